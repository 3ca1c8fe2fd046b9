// What is wrong with a page as a browser lays it out: called by layout.py, in the page.

/** Describe an element: its tag and class, its first words, and the section that it stands in. */
function describe(element) {
  const words = (element.getAttribute("src") || element.textContent).trim().replace(/\s+/g, " ");
  const name = element.tagName.toLowerCase() + [...element.classList].map((c) => `.${c}`).join("");
  const id = element.closest("[id]")?.id;
  return `${name} ${JSON.stringify(words.slice(0, 50))}` + (id ? ` in #${id}` : "");
}

/** Show the page as it is at rest: without transitions, and without the marks of links to headings,
 * which stand beside a column while the mouse is on it. */
function rest() {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important } .headerlink { display: none !important }";
  document.head.append(style);
}

/** By how many pixels headings and signatures of the theme stand out of their column. */
const STANDS_OUT = 8;

/** Return how a box deals with content that is wider: it, or a box around it, may scroll. */
function overflowOf(element) {
  const around = element.parentElement;
  const own = getComputedStyle(element).overflowX;
  return own === "visible" && around !== document.body ? overflowOf(around) : own;
}

/** List elements that are wider than their column, and pictures that were not loaded. */
function layoutFaults(mayScroll) {
  const faults = [];
  const page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth) faults.push("the page scrolls sideways");
  const wide = [...document.body.querySelectorAll("*")].filter(
    (e) => e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && !e.closest("svg, math *"),
  );
  // What is wider than a box is usually wider than the box around it, too.
  const outer = new Set(wide.map((element) => element.parentElement));
  for (const element of wide.filter((element) => !outer.has(element))) {
    const by = element.scrollWidth - element.clientWidth;
    const overflow = overflowOf(element);
    // What a notebook prints has times, numbers and paths of the machine, and their widths.
    const may = mayScroll || element.closest(".cell_output");
    if (overflow === "visible" ? by <= STANDS_OUT : overflow === "auto" && may) continue;
    const how = { visible: "wider than its column", auto: "scrolls sideways" }[overflow] ?? "cut off";
    faults.push(`${how} by ${by} px: ${describe(element)}`);
  }
  for (const image of document.images)
    if (!image.complete || !image.naturalWidth) faults.push(`does not load: ${describe(image)}`);
  return faults;
}

/** Return red, green and blue of a color of CSS, and its opacity, from 0 to 1. */
function channels(color) {
  const [r, g, b, alpha = 1] = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
  return [r / 255, g / 255, b / 255, alpha];
}

/** Return the color of a translucent layer on an opaque one. */
function blend([r, g, b, alpha], below) {
  return [r, g, b].map((value, i) => alpha * value + (1 - alpha) * below[i]);
}

/** Return the ratio of the luminances of two colors, by WCAG 2. */
function ratio(one, other) {
  const luminance = (color) => {
    const [r, g, b] = color.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Return what an element stands on: the backgrounds of the boxes around it, from outside in. */
function background(element, page, known) {
  if (!element) return page;
  if (!known.has(element)) {
    const around = background(element.parentElement, page, known);
    const own = channels(getComputedStyle(element).backgroundColor);
    known.set(element, own[3] ? blend(own, around) : around);
  }
  return known.get(element);
}

/** The contrast that texts need by WCAG's level AA, and large ones. A drawing has one color for light
 * and dark pages, whose contrast with both is at most 4.3. */
const CONTRAST = { text: 4.5, large: 3, drawn: 4 };

/** Return what a text of a drawing stands on: the last shape drawn below its middle. */
function drawnBelow(text, page, known) {
  const drawing = text.ownerSVGElement;
  let below = background(drawing.parentElement, page, known);
  const box = text.getBoundingClientRect();
  for (const shape of drawing.querySelectorAll("path, rect, circle, ellipse, polygon")) {
    if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    const fill = getComputedStyle(shape).fill;
    if (fill === "none" || shape.closest("defs, clipPath")) continue;
    const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    const toShape = shape.getScreenCTM()?.inverse();
    if (toShape && shape.isPointInFill(middle.matrixTransform(toShape)))
      below = blend(channels(fill), below);
  }
  return below;
}

/** List texts that are hard to read on what they stand on. */
function contrastFaults(page) {
  const faults = new Map();
  const seen = new Set();
  const known = new Map();
  const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (seen.has(element) || !texts.currentNode.data.trim()) continue;
    seen.add(element);
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest("script, style, title, desc, metadata, [aria-hidden=true]")) continue;
    const style = getComputedStyle(element);
    const isDrawn = element instanceof SVGElement;
    const below = (isDrawn ? drawnBelow : background)(element, page, known);
    const [r, g, b, alpha] = channels(isDrawn ? style.fill : style.color);
    const color = blend([r, g, b, alpha * style.opacity], below);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const needed = CONTRAST[isLarge ? "large" : isDrawn ? "drawn" : "text"];
    const contrast = ratio(color, below);
    const key = [...color, ...below].join();
    if (contrast < needed && !faults.has(key))
      faults.set(key, `contrast ${contrast.toFixed(2)}: ${describe(element)}`);
  }
  return [...faults.values()];
}

/** Set the theme of the page, and return its color. */
function setTheme(theme) {
  document.body.dataset.theme = theme;
  return blend(channels(getComputedStyle(document.body).backgroundColor), [1, 1, 1]);
}

/** Return the addresses of the drawings of the page, and the widths at which they are shown. */
function drawings() {
  const shown = [...document.images].filter(
    (image) => image.src.endsWith(".svg") && image.naturalWidth,
  );
  return shown.map((image) => [image.src, image.getBoundingClientRect().width]);
}

/** Return the size of the smallest text of this drawing if it is shown at a width. */
function smallestText(width) {
  const drawing = document.documentElement;
  const sizes = [...drawing.querySelectorAll("text, tspan")].map((text) =>
    parseFloat(getComputedStyle(text).fontSize),
  );
  return (Math.min(...sizes) * width) / drawing.viewBox.baseVal.width;
}

Object.assign(globalThis, { rest, layoutFaults, contrastFaults, setTheme, drawings, smallestText });
