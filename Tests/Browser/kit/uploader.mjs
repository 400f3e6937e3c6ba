// The command that the conformance harness runs: uploads a file with onward.js, in Node or in a page of a running browser.
//   uploader.mjs node FILE URL
//   uploader.mjs PORT FILE URL STATE    PORT is that of `conformance.test.mjs`, which has the browser
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { basename } from "node:path";

const [where, file, url, state] = process.argv.slice(2);

/** The options of the tested uploads: a scenario has one minute. */
export const options = { retries: 2, stallTimeout: 2000, token: "example" };

/** The exit status for a result: 75 requests another run, which resumes the upload. */
export function exitStatus(error) {
  if (!error) return 0;
  return error.code === "unauthorized" ? 77 : error.code === "exhausted" ? 75 : 69;
}

if (where === "node") {
  const { onward } = await import("./module.mjs");
  const transfer = onward.upload(readFileSync(file), url, { ...options, name: basename(file) });
  const error = await transfer.finished.then(() => null, (error) => error);
  if (error) console.error(`${error.code}: ${error.message}`);
  process.exitCode = exitStatus(error);
} else if (where) {
  const exchange = request({ host: "127.0.0.1", port: where, method: "POST" }, async (response) => {
    let text = "";
    for await (const piece of response) text += piece;
    const error = JSON.parse(text);
    if (error) console.error(`${error.code}: ${error.message}`);
    process.exitCode = exitStatus(error);
  });
  exchange.on("error", (error) => {
    console.error(error.message);
    process.exitCode = 70;
  });
  exchange.end(JSON.stringify({ file, url, state }));
}
