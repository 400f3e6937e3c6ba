// What a person sees and does on the page for people, for the tests in page*.test.mjs.
import { createHash } from "node:crypto";
import { closeSync, createReadStream, ftruncateSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

export const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** SHA-256 of a file that may be too large for a buffer. */
export async function hashFile(path) {
  const digest = createHash("sha256");
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 22 })) digest.update(piece);
  return digest.digest("hex");
}

/** Writes a file of zeros that needs little space on the disk, with random bytes around some offsets; returns its path, name
 * and size. */
export function writeSparseFile(directory, name, size, offsets, random) {
  const path = join(directory, name);
  const descriptor = openSync(path, "w");
  ftruncateSync(descriptor, size);
  for (const offset of [0, ...offsets, size - 2000]) writeSync(descriptor, random.bytes(2000), 0, 2000, Math.max(0, offset - 1000));
  ftruncateSync(descriptor, size);
  closeSync(descriptor);
  return { path, name, size };
}

/** Writes a file with random content; returns its path, size and SHA-256. */
export function writeFile(directory, name, size, random) {
  const path = join(directory, name);
  const digest = createHash("sha256");
  const descriptor = openSync(path, "w");
  for (let written = 0; written < size;) {
    const piece = random.bytes(Math.min(1 << 20, size - written));
    for (let copies = 0; copies < 16 && written < size; copies += 1) {
      const bytes = piece.subarray(0, Math.min(piece.length, size - written));
      writeSync(descriptor, bytes);
      digest.update(bytes);
      written += bytes.length;
    }
  }
  closeSync(descriptor);
  return { path, name, size, sha256: digest.digest("hex") };
}

/** The names in the table in their order, without those that the search has hidden. */
export const shownNames = (page) => page.evaluate(() =>
  Array.from(document.querySelectorAll("#entries tbody tr:not([hidden]) td:first-child a"), (link) => link.textContent));

/** Waits until the folder shows the entry. */
export const awaitEntry = (page, name, seconds = 30) => page.waitFor((name) =>
  Array.from(document.querySelectorAll("#entries tbody tr:not([hidden]) td:first-child a")).some((link) => link.textContent === name),
{ parameters: [name], seconds });

/** Waits until an upload has one of the states; returns the sentence below its name. */
export const awaitUpload = (page, name, states, { seconds = 60, beyond = 0 } = {}) => page.waitFor((name, states, beyond) => {
  const row = Array.from(document.querySelectorAll("#upload-rows li")).find((one) => one.querySelector("bdi").textContent === name);
  return row && states.includes(row.classList[0]) && row.querySelector("progress").value >= beyond && row.querySelector(".status").textContent;
}, { parameters: [name, [states].flat(), beyond], seconds });

/** The part of an upload that its row shows as sent; 0 if there is no row. */
export const uploadPart = (page, name) => page.evaluate((name) => {
  const row = Array.from(document.querySelectorAll("#upload-rows li")).find((one) => one.querySelector("bdi").textContent === name);
  return row ? row.querySelector("progress").value : 0;
}, name);

/** Presses the button of an upload whose label begins with the text, as soon as there is one. */
export const pressUpload = (page, name, label) => page.waitFor((name, label) => {
  const row = Array.from(document.querySelectorAll("#upload-rows li")).find((one) => one.querySelector("bdi").textContent === name);
  const button = row && Array.from(row.querySelectorAll("button")).find((one) => one.getAttribute("aria-label").startsWith(label));
  button?.click();
  return Boolean(button);
}, { parameters: [name, label] });

export const uploadNames = (page) => page.evaluate(() =>
  Array.from(document.querySelectorAll("#upload-rows bdi"), (name) => name.textContent));

/** Waits until the page has finished its start, or has loaded a folder. */
export const awaitPage = (page) => page.waitFor(() =>
  !document.getElementById("tools").hidden && document.body.dataset.isReady === "true" && !document.body.classList.contains("loading"));

export const awaitDialog = (page) => page.waitFor(() => document.querySelector("dialog h2")?.textContent);

/** The focused element: its label or its text. */
export const focused = (page) => page.evaluate(() =>
  document.activeElement.getAttribute("aria-label") ?? (document.activeElement.textContent.trim() || document.activeElement.id));
