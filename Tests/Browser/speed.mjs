// Measures the page and the module in a headless browser, for scripts/benchmarks/browsers.py. Prints one JSON object: for each
// subject the values of all runs, in milliseconds. The subjects alternate; a first run, which is not reported, warms up.
//   speed.mjs paint BROWSER RUNS NAME=URL…     until the first content of each page is painted
//   speed.mjs upload BROWSER RUNS URL FILE DIRECTORY
//                                              one file: `module`, and `request`, a plain PUT by XMLHttpRequest
//   speed.mjs files BROWSER RUNS URL COUNT     files of 4 KiB: `page`, dropped on the page, and `request`, sent by a script in
//                                              the same page with fetch, four at a time
// URL is that of the server, with a slash at its end. DIRECTORY is that of its published files.
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./kit/browser.mjs";
import { awaitPage } from "./kit/people.mjs";
import { source } from "./kit/module.mjs";

const version = /"(\d+\.\d+\.\d+)"/.exec(source)[1];
const FILE_SIZE = 4096;

/** Milliseconds from the start of the navigation to the first content (Paint Timing). The response is not in a cache. */
async function paint(browser, url, run) {
  const page = await browser.open("about:blank");
  await page.navigate(`${url}?run=${run}`);
  const time = await page.waitFor(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  await page.close();
  return time;
}

/** Opens a document of the server, which can import the module: it has no Content-Security-Policy. */
async function openModule(browser, server) {
  const page = await browser.open(`${server}onward/${version}/onward.js`);
  await page.evaluate(() => {
    const input = document.createElement("input");
    Object.assign(input, { type: "file", id: "file" });
    document.body.append(input);
  });
  return page;
}

/**
 * Uploads a file, either with the module or with one plain request. Nothing is deleted, because that would slow down the
 * next upload; but the file is emptied.
 */
async function upload(browser, { server, path, directory }, subject, run) {
  const page = await openModule(browser, server);
  await page.choose("#file", [path]);
  const name = `large ${subject} ${run}.bin`;
  const time = await page.evaluate(async (usesModule, name) => {
    const [file] = document.getElementById("file").files;
    const target = new URL(`/files/${encodeURIComponent(name)}`, location).href;
    const { upload } = await import(location.href);
    const start = performance.now();
    if (usesModule) {
      await upload(file, target).finished;
    } else {
      await new Promise((resolve, reject) => {
        const exchange = new XMLHttpRequest();
        exchange.open("PUT", target);
        exchange.onload = () => (exchange.status < 300 ? resolve() : reject(new Error(exchange.status)));
        exchange.onerror = reject;
        exchange.send(file);
      });
    }
    return performance.now() - start;
  }, subject === "module", name);
  await page.close();
  truncateSync(join(directory, name));
  return time;
}

/** Opens an empty folder on the page, and uploads new small files into it. */
async function uploadFiles(browser, { server, count }, subject, run) {
  const page = await browser.open(`${server}files/${subject}-${run}/`);
  await awaitPage(page);
  await page.evaluate((count, size) => {
    window.files = Array.from({ length: count }, (_, index) => new File([new Uint8Array(size).fill(index)], `file ${index}.bin`));
    window.started = performance.now();
  }, count, FILE_SIZE);
  await (subject === "page" ? dropFiles(page) : sendFiles(page));
  const time = await page.waitFor(() => window.ended && window.ended - window.started, { seconds: 300 });
  await page.close();
  return time;
}

/** Drops the files on the page. The end is when the page shows that all of them are complete. */
const dropFiles = (page) => page.evaluate(() => {
  const transfer = new DataTransfer();
  for (const file of window.files) transfer.items.add(file);
  const event = new DragEvent("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: transfer });
  const summary = document.getElementById("uploads-summary");
  const expected = `${window.files.length.toLocaleString("en")} of`;
  new MutationObserver(() => {
    if (!window.ended && summary.textContent.startsWith(expected)) window.ended = performance.now();
  }).observe(summary, { childList: true, characterData: true, subtree: true });
  document.body.dispatchEvent(event);
});

/** Sends the files with plain requests, four at a time. */
const sendFiles = (page) => page.evaluate(async () => {
  const files = window.files.slice();
  const send = async () => {
    for (let file = files.pop(); file; file = files.pop()) {
      const response = await fetch(encodeURIComponent(file.name), { method: "PUT", body: file });
      if (!response.ok) throw new Error(response.status);
    }
  };
  await Promise.all([send(), send(), send(), send()]);
  window.ended = performance.now();
});

/** Measures all subjects in each run, in alternating order. */
async function measure(runs, subjects) {
  const names = Object.keys(subjects);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let run = -1; run < runs; run += 1) {
    for (const name of run % 2 ? names : names.toReversed()) {
      const time = await subjects[name](`${run}-${Date.now()}`);
      if (run >= 0) times[name].push(time);
    }
  }
  return times;
}

const [kind, name, runs, ...parameters] = process.argv.slice(2);
const browser = await launch(name);
const [server, value, directory] = parameters;
const kinds = {
  paint: () => Object.fromEntries(parameters.map((text) => {
    const [, subject, url] = /^(\w+)=(.*)$/.exec(text);
    return [subject, (run) => paint(browser, url, run)];
  })),
  upload: () => subjects(upload, ["module", "request"], { server, path: value, directory }),
  files: () => subjects(uploadFiles, ["page", "request"], { server, count: Number(value) }),
};
const subjects = (action, names, settings) =>
  Object.fromEntries(names.map((name) => [name, (run) => action(browser, settings, name, run)]));
try {
  console.log(JSON.stringify(await measure(Number(runs), kinds[kind]())));
} finally {
  await browser.close();
}
