// Texts, formats and elements. Names and other data become text nodes and attributes, never markup.

const page = document.documentElement.dataset;
const language =
  navigator.languages.map((tag) => tag.split("-")[0]).find((tag) => Object.hasOwn(texts, tag)) ?? "en";
document.documentElement.lang = language;

const numbers = new Intl.NumberFormat(language);
const plurals = new Intl.PluralRules(language);
const dates = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
const clocks = new Intl.DateTimeFormat(language, { timeStyle: "short" });
const collator = new Intl.Collator(language, { numeric: true });

/** The text of the table, with its placeholders replaced. */
function text(key, values = {}) {
  let pattern = texts[language][key];
  if (typeof pattern === "object") pattern = pattern[plurals.select(values.count)] ?? pattern.other;
  return pattern.replace(/\{(\w+)\}/g, (_, name) =>
    typeof values[name] === "number" ? numbers.format(values[name]) : values[name]);
}

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte", "petabyte"];
const sizeFormats = new Map();

/** 1234567 as "1.2 MB". The units are powers of 1000. */
function formatSize(bytes) {
  if (bytes < 1000) return `${numbers.format(Math.round(bytes))} B`;
  let power = 0;
  while (bytes >= 999.5 && power < units.length - 1) {
    bytes /= 1000;
    power += 1;
  }
  const digits = bytes < 99.95 ? 1 : 0;
  const key = power * 2 + digits;
  if (!sizeFormats.has(key)) {
    sizeFormats.set(key, new Intl.NumberFormat(language, {
      style: "unit", unit: units[power], minimumFractionDigits: digits, maximumFractionDigits: digits,
    }));
  }
  return sizeFormats.get(key).format(bytes);
}

function formatDuration(seconds) {
  const format = (value, unit) =>
    new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(value);
  if (seconds < 60) return format(Math.max(1, Math.round(seconds)), "second");
  if (seconds < 3600) return format(Math.round(seconds / 60), "minute");
  if (seconds < 36_000) {
    return `${format(Math.floor(seconds / 3600), "hour")} ${format(Math.floor(seconds / 60) % 60, "minute")}`;
  }
  return seconds < 172_800 ? format(Math.round(seconds / 3600), "hour") : format(Math.round(seconds / 86_400), "day");
}

const invisible = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The name with visible codes in place of characters that would hide or reorder others, such as U+202E. */
function visible(name) {
  return name.replace(invisible, (character) =>
    `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** The name for use in a sentence: its direction does not change that of the sentence. */
const isolated = (name) => `\u2068${visible(name)}\u2069`;

/** Creates an element. A property that begins with "on" is a listener, "text" is the content; all others are attributes. */
function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const icon = (name) => element("span", { class: `icon ${name}` });

/** A button that shows only an icon; its label is also its tooltip. */
function iconButton(name, label, onclick) {
  return element("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick }, icon(name));
}

const byID = (id) => document.getElementById(id);

/** Replaces text only if it changes, so that screen readers and the layout have no work. */
function setText(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

/** Screen readers read the message. */
function announce(message) {
  const log = byID("announcements");
  log.append(element("p", { text: message }));
  while (log.childElementCount > 5) log.firstElementChild.remove();
}

/** Writes the texts of the document that the table contains. */
function translateDocument() {
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = text(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", text(node.dataset.label));
}

/**
 * Puts the rows into the parent in this order. A row that keeps its place is not touched, because it would lose the focus.
 */
function arrange(parent, rows) {
  const focused = document.activeElement;
  const kept = new Set(rows);
  for (const row of Array.from(parent.children)) if (!kept.has(row)) row.remove();
  let place = parent.firstElementChild;
  for (const row of rows) {
    if (row === place) place = place.nextElementSibling;
    else parent.insertBefore(row, place);
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

let dialogCount = 0;

/**
 * Shows a modal dialog, and returns the value of the button that closes it; null after Escape. `buttons` are
 * `{value, label, style}`; the first is the default of Enter in a field. A button without a value only closes the dialog.
 */
function ask(title, content, buttons, { submit } = {}) {
  return new Promise((resolve) => {
    const id = `dialog-${++dialogCount}`;
    const form = element("form", {}, element("h2", { id, text: title }), ...content);
    const dialog = element("dialog", { "aria-labelledby": id }, form);
    const row = element("div", { class: "buttons" });
    let result = null;
    const isDangerous = buttons.some(({ style }) => style === "danger");
    for (const { value, label, style } of buttons) {
      row.append(value === null
        ? element("button", { type: "button", text: label, autofocus: isDangerous, onclick: () => dialog.close() })
        : element("button", { type: "submit", value: String(value), class: style, text: label }));
    }
    form.append(row);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const value = event.submitter?.value ?? String(buttons[0].value);
      if (submit && !(await submit(value))) return;
      result = value;
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
