const table = document.querySelector("#ops");
if (table) {
  const rows = [...table.tBodies[0].rows];
  const search = document.querySelector("#filter");
  const bad = document.querySelector("#bad");
  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const text = row.cells[0].textContent + " " + row.cells[1].textContent;
      row.hidden = !text.toLowerCase().includes(wanted) || (bad.checked && !row.classList.contains("bad"));
      shown += !row.hidden;
    }
    document.querySelector("#count").textContent = `${shown} of ${rows.length}`;
  };
  search.addEventListener("input", show);
  bad.addEventListener("change", show);
  show();
  const heads = [...table.tHead.rows[1].cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "descending" || (head.dataset.sort === "text" && head.getAttribute("aria-sort") !== "ascending");
      const sign = down ? 1 : -1;
      const key = head.dataset.sort === "text" ? (row) => row.cells[column].textContent : (row) => Number(row.cells[column].dataset.value);
      rows.sort((a, b) => sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
}
const open = () => {
  const there = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (there && there.tagName === "DETAILS") {
    there.open = true;
    there.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();
