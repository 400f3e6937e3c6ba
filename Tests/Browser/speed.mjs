// Measures the page and the module in a headless browser, for scripts/benchmarks/browsers.py. Prints one JSON object: for each
// subject the values of all runs, in milliseconds. The subjects alternate; a first run, which is not reported, warms up.
//   speed.mjs paint BROWSER RUNS NAME=URL…     until the first content of each page is painted
//   speed.mjs upload BROWSER RUNS URL FILE     one file: `module`, and `request`, a plain PUT by XMLHttpRequest
//   speed.mjs files BROWSER RUNS URL COUNT     files of 10 kB: `page`, chosen on the page, and `request`, four at a time
// URL is that of the server, with a slash at its end.
import { launch } from "./kit/browser.mjs";
import { awaitPage } from "./kit/people.mjs";
import { source } from "./kit/module.mjs";

const version = /"(\d+\.\d+\.\d+)"/.exec(source)[1];
const FILE_SIZE = 10_000;

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

/** Uploads a file, either with the module or with one plain request, and removes it from the server. */
async function upload(browser, server, path, usesModule) {
  const page = await openModule(browser, server);
  await page.choose("#file", [path]);
  const time = await page.evaluate(async (usesModule) => {
    const [file] = document.getElementById("file").files;
    const target = new URL("/files/large.bin", location).href;
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
    const time = performance.now() - start;
    await fetch(target, { method: "DELETE" });
    return time;
  }, usesModule);
  await page.close();
  return time;
}

/** Uploads new small files as a person does: chosen on the page. */
async function uploadOnPage(browser, server, count, run) {
  const page = await browser.open(`${server}files/page-${run}/`);
  await awaitPage(page);
  await page.evaluate((count, size) => {
    const transfer = new DataTransfer();
    for (let index = 0; index < count; index += 1) {
      transfer.items.add(new File([new Uint8Array(size).fill(index)], `file ${index}.bin`));
    }
    const input = document.getElementById("files-input");
    input.files = transfer.files;
    window.started = performance.now();
    input.dispatchEvent(new Event("change"));
  }, count, FILE_SIZE);
  const time = await page.waitFor((count) =>
    document.getElementById("uploads-summary").textContent.startsWith(`${count.toLocaleString("en")} of`) &&
      performance.now() - window.started, { parameters: [count], seconds: 300 });
  await page.close();
  return time;
}

/** Sends new small files with plain requests, four at a time. */
async function uploadByRequests(browser, server, count, run) {
  const page = await openModule(browser, server);
  const time = await page.evaluate(async (count, size, folder) => {
    const files = Array.from({ length: count }, (_, index) => new File([new Uint8Array(size).fill(index)], `${index}`));
    const start = performance.now();
    const send = async () => {
      for (let file = files.pop(); file; file = files.pop()) {
        const response = await fetch(folder + file.name, { method: "PUT", body: file });
        if (!response.ok) throw new Error(response.status);
      }
    };
    await Promise.all([send(), send(), send(), send()]);
    return performance.now() - start;
  }, count, FILE_SIZE, `${server}files/request-${run}/`);
  await page.close();
  return time;
}

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
const [server, value] = parameters;
const kinds = {
  paint: () => Object.fromEntries(parameters.map((text) => {
    const [, subject, url] = /^(\w+)=(.*)$/.exec(text);
    return [subject, (run) => paint(browser, url, run)];
  })),
  upload: () => ({
    module: () => upload(browser, server, value, true), request: () => upload(browser, server, value, false),
  }),
  files: () => ({
    page: (run) => uploadOnPage(browser, server, Number(value), run),
    request: (run) => uploadByRequests(browser, server, Number(value), run),
  }),
};
try {
  console.log(JSON.stringify(await measure(Number(runs), kinds[kind]())));
} finally {
  await browser.close();
}
