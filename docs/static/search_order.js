// The order of search results: Sphinx reads the numbers, and calls `score` with each result.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  /** Put titles with more of the words before those with fewer, and pages for users before
   * pages of figures and pages for contributors. */
  score: ([page, title, anchor, description, score]) => {
    const query = new URLSearchParams(window.location.search).get("q") ?? "";
    const words = query.toLowerCase().split(/\W+/).filter(Boolean);
    const found = new Set(title.toLowerCase().split(/\W+/));
    const forUsers = /^docs\/(?!capture$|library_findings$)/.test(page);
    return score + 2 * words.filter((word) => found.has(word)).length - (forUsers ? 0 : 4);
  },
};
