// The client mode of the conformance harness tests onward.js in Node and in browsers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { browsers, includesNode, launch } from "./kit/browser.mjs";
import { source } from "./kit/module.mjs";
import { serve, servePages } from "./kit/pages.mjs";
import { endAll, program, start, temporaryDirectory } from "./kit/server.mjs";
import { options } from "./kit/uploader.mjs";

const uploader = fileURLToPath(new URL("kit/uploader.mjs", import.meta.url));

/** Runs the harness; returns the cases that did not pass. */
async function run(command, jobs) {
  const directory = temporaryDirectory("onward-conformance-");
  const report = join(directory, "report.json");
  const harness = start(join(dirname(program), "onward-conformance"), [
    "client", "--client-kind", "browser", "--strict", "--jobs", String(jobs), "--timeout", "120", "--json", report,
    "--command", command, ...(process.env.ONWARD_ONLY ? ["--only", process.env.ONWARD_ONLY] : []),
  ]);
  await harness.ended;
  const { cases } = JSON.parse(readFileSync(report, "utf8"));
  assert.ok(cases.filter(({ outcome }) => outcome === "pass").length > (process.env.ONWARD_ONLY ? 0 : 40), harness.log);
  return cases
    .filter(({ outcome }) => !["pass", "skipped"].includes(outcome))
    .map(({ id, outcome, expected, seen }) => `${outcome} ${id}: expected ${expected}, seen ${seen}`);
}

test("onward.js passes the harness in Node", { skip: !includesNode }, async () => {
  const node = `exec '${process.execPath}' '${uploader}' node {file} {url}`;
  assert.deepEqual(await run(node, 4), []);
});

for (const name of browsers) {
  test(`onward.js passes the harness in ${name}`, async () => {
    const pages = await servePages("*", { "/onward.js": { type: "text/javascript", content: source } });
    const browser = await launch(name);
    // Each scenario has its own storage, which its runs share.
    const contexts = new Map();
    // Firefox cannot open a tab while another one is closed.
    let last = Promise.resolve();
    const inTurn = (action) => (last = last.then(action, action));
    const perform = async ({ file, url, state }, response) => {
      const page = await inTurn(async () => {
        if (!contexts.has(state)) contexts.set(state, (await browser.send("browser.createUserContext")).userContext);
        return await browser.open(pages.url, { userContext: contexts.get(state) });
      });
      // The harness can kill the command. That closes the tab, too.
      response.on("close", () => inTurn(() => page.close()).catch(() => {}));
      await page.choose("#file", [file]);
      return await page.evaluate(async (url, options) => {
        const { upload } = await import("/onward.js");
        return await upload(file.files[0], url, options).finished.then(
          () => null, ({ code = "other", message }) => ({ code, message }));
      }, url, options);
    };
    const host = await serve(async (request, response) => {
      let text = "";
      for await (const piece of request) text += piece;
      const error = await perform(JSON.parse(text), response).catch(({ message }) => ({ code: "other", message }));
      response.end(JSON.stringify(error));
    });
    try {
      const command = `exec '${process.execPath}' '${uploader}' ${host.port} {file} {url} {state}`;
      assert.deepEqual(await run(command, 4), []);
    } finally {
      await endAll();
    }
  });
}
