// Uploads of onward.js from pages of another origin in real browsers.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, beforeEach, describe, test } from "node:test";
import { browsers, launch } from "./kit/browser.mjs";
import { examples } from "./kit/document.mjs";
import { servePages } from "./kit/pages.mjs";
import { hash, writeFile } from "./kit/people.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);
const LARGE = Number(process.env.ONWARD_BROWSER_SIZE ?? 1_000_000_000);

const directory = temporaryDirectory("onward-files-");
let server, proxy, pages, moduleURL;

/** Writes a file for `page.choose`; returns its path and its SHA-256. */
const file = (name, size) => writeFile(directory, name, size, random);

async function startServers() {
  pages = await servePages("*");
  server = await Server.start(["--cors-origin", pages.url, "--log-level", "debug"]);
  proxy = await FaultProxy.start(server.port);
  const version = /"(\d+\.\d+\.\d+)"/.exec((await import("./kit/module.mjs")).source)[1];
  moduleURL = `${server.url}/onward/${version}/onward.js`;
  pages.documents["/index.html"] = { content: examples("html", server.url)[0] };
}

/** Starts an upload of the chosen file as `window.transfer`, and records its states. */
function begin(page, target, options = {}, { index = 0, module = moduleURL } = {}) {
  return page.evaluate(async (module, target, options, index) => {
    const { upload } = await import(module);
    window.states = [];
    window.transfer = upload(document.getElementById("file").files[index], target, options);
    window.outcome = null;
    transfer.finished.then(
      (result) => (outcome = result), ({ name, code, message, problem }) => (outcome = { name, code, message, problem }));
    (async () => {
      try {
        for await (const { state } of transfer) {
          if (states.at(-1) !== state) states.push(state);
        }
      } catch { /* `outcome` has the error. */ }
    })();
  }, module, target, options, index);
}

/** Counts the results of workers in `window.workers`. */
const countWorkers = (page) => page.evaluate(() => {
  window.workers = 0;
  window.Worker = class extends Worker {
    constructor(...values) {
      super(...values);
      this.addEventListener("message", ({ data }) => { if (data) window.workers += 1; });
    }
  };
});

const outcome = (page, seconds = 120) => page.waitFor(() => window.outcome, { seconds });
const progress = (page) => page.evaluate(() => {
  const { state, sent, acknowledged, total } = transfer;
  return { state, sent, acknowledged, total };
});

for (const name of browsers) {
  describe(name, () => {
    let browser, page;
    endWithTests();
    before(async () => {
      await startServers();
      browser = await launch(name);
    });
    beforeEach(() => proxy.release());

    const open = async (path = "/") => (page = await browser.open(pages.url + path));

    test("a page uploads a file through a connection that is cut every five million bytes, and reads it with ranges", async () => {
      const sent = file("ein größeres.bin", 24_000_000);
      const cutting = await FaultProxy.start(server.port, () => 5_000_000);
      await open();
      await page.choose("#file", [sent.path]);
      await countWorkers(page);
      await begin(page, `${cutting.url}/files/${name}/`, { digest: true });
      const result = await outcome(page);
      assert.equal(await page.evaluate(() => workers), 1, "a worker has computed the digest");
      assert.deepEqual(result.digest, { sha256: sent.sha256, isVerified: true }, JSON.stringify(result));
      assert.equal(decodeURIComponent(result.url), `${cutting.url}/files/${name}/ein größeres.bin`);
      assert.ok(cutting.cuts >= 2);
      assert.equal(hash(server.file(`${name}/ein größeres.bin`)), sent.sha256);
      const range = await page.evaluate(async (url) => {
        const response = await fetch(url, { headers: { Range: "bytes=12000000-" } });
        return [response.status, response.headers.get("Content-Range"), (await response.arrayBuffer()).byteLength];
      }, result.url.replace(cutting.url, server.url));
      assert.deepEqual(range, [206, "bytes 12000000-23999999/24000000", 12_000_000]);
    });

    test("the examples of the document upload a file, and resume it", async () => {
      const chosen = file("example.bin", 3_000_000);
      page = await browser.open(`${pages.url}/index.html`);
      await page.choose("#file", [chosen.path]);
      const text = await page.waitFor(() => result.value);
      assert.match(text, /^The file is at http.*\/files\/inbox\/example.*\.bin$/);
      assert.equal(hash(server.file(`inbox/${text.split("/").at(-1)}`)), chosen.sha256);
      const large = file("pending.bin", 6_000_000);
      await open();
      await page.choose("#file", [large.path]);
      proxy.hold(3_000_000);
      await begin(page, `${proxy.url}/files/${name}/pending.bin`, { appendSize: 2_000_000 });
      await page.waitFor(() => transfer.acknowledged >= 2_000_000);
      await page.reload();
      proxy.release();
      await page.choose("#file", [large.path]);
      const block = examples("js", server.url).find((example) => example.includes("await pendingUploads()"));
      await page.evaluate(`async (module) => { const { pendingUploads } = await import(module);\n${block}}`, moduleURL);
      assert.equal(hash(server.file(`${name}/pending.bin`)), large.sha256);
    });

    test("after a reload the upload is offered, and resumed when the same file is chosen again", async () => {
      const chosen = file("reloaded.bin", 8_000_000);
      const other = file("other.bin", 8_000_000);
      await open();
      await page.choose("#file", [chosen.path]);
      proxy.hold(5_000_000);
      await begin(page, `${proxy.url}/files/${name}/reloaded.bin`, { appendSize: 2_000_000 });
      await page.waitFor(() => transfer.acknowledged >= 4_000_000);
      await page.reload();
      proxy.release();
      await page.choose("#file", [chosen.path, other.path]);
      const before = server.process.log.length;
      const found = await page.evaluate(async (module) => {
        const { pendingUploads } = await import(module);
        window.pending = await pendingUploads();
        const error = await pending[0].resume(file.files[1]).catch(({ code }) => code);
        window.transfer = await pending[0].resume(file.files[0]);
        window.first = null;
        window.outcome = null;
        transfer.finished.then((result) => (outcome = result), ({ message }) => (outcome = { message }));
        for await (const { state, acknowledged } of transfer) {
          if (state !== "uploading" || acknowledged === 0) continue;
          first = acknowledged;
          break;
        }
        const { name, size } = pending[0];
        return { count: pending.length, error, first, name, size, keys: Object.keys(pending[0]) };
      }, moduleURL);
      assert.deepEqual([found.count, found.error, found.name, found.size], [1, "different-file", "reloaded.bin", 8_000_000]);
      assert.ok(!found.keys.includes("url"));
      assert.ok(found.first >= 4_000_000);
      assert.equal((await outcome(page)).status, 201);
      assert.equal(hash(server.file(`${name}/reloaded.bin`)), chosen.sha256);
      assert.ok(!server.process.log.slice(before).includes(` PUT /files/${name}/reloaded.bin`), "no second upload was created");
      assert.equal(await page.evaluate(async (module) => (await (await import(module)).pendingUploads()).length, moduleURL), 0);
    });

    test("the upload continues after the browser was killed and the server restarted", async () => {
      const chosen = file("killed.bin", 8_000_000);
      const profile = temporaryDirectory("onward-profile-");
      const first = await launch(name, { profile });
      const tab = await first.open(pages.url);
      await tab.choose("#file", [chosen.path]);
      proxy.hold(5_000_000);
      await begin(tab, `${proxy.url}/files/${name}/killed.bin`, { appendSize: 2_000_000 });
      await tab.waitFor(() => transfer.acknowledged >= 4_000_000);
      // The browser writes its database some time later.
      await tab.evaluate(() => transfer.pause());
      await tab.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
      await first.kill();
      await server.crash();
      await server.restart();
      proxy.release();
      const second = await launch(name, { profile });
      const again = await second.open(pages.url);
      await again.choose("#file", [chosen.path]);
      const acknowledged = await again.evaluate(
        async (module) => (await (await import(module)).pendingUploads()).map(({ acknowledged }) => acknowledged), moduleURL);
      assert.equal(acknowledged.length, 1);
      await begin(again, `${proxy.url}/files/${name}/killed.bin`);
      assert.equal((await outcome(again)).status, 201);
      assert.equal(hash(server.file(`${name}/killed.bin`)), chosen.sha256);
    });

    test("two tabs that send the same file write one upload, and both get its result", async () => {
      const chosen = file("tabs.bin", 20_000_000);
      const before = proxy.contentToServer;
      const tabs = [await browser.open(pages.url), await browser.open(pages.url)];
      for (const tab of tabs) {
        await tab.choose("#file", [chosen.path]);
        await begin(tab, `${proxy.url}/files/${name}-tabs/`, { appendSize: 4_000_000 });
      }
      const [one, two] = await Promise.all(tabs.map((tab) => outcome(tab)));
      assert.equal(one.url, two.url);
      assert.deepEqual(server.names(`${name}-tabs`), ["tabs.bin"]);
      assert.equal(proxy.contentToServer - before, chosen.size);
    });

    test("a stored handle resumes the upload without choosing the file", async () => {
      await open();
      proxy.hold(1_500_000);
      await page.evaluate(async (module, target) => {
        const { upload } = await import(module);
        const root = await navigator.storage.getDirectory();
        const handle = await root.getFileHandle("stored.bin", { create: true });
        const writable = await handle.createWritable();
        await writable.write(new Uint8Array(4_000_000).fill(7));
        await writable.close();
        window.transfer = upload(await handle.getFile(), target, { handle, appendSize: 1_000_000 });
        transfer.finished.catch(() => {});
      }, moduleURL, `${proxy.url}/files/${name}/`);
      await page.waitFor(() => transfer.acknowledged >= 1_000_000);
      await page.reload();
      proxy.release();
      const result = await page.evaluate(async (module) => {
        const { pendingUploads } = await import(module);
        const [pending] = await pendingUploads();
        const transfer = await pending.resume();
        const { status } = await transfer.finished;
        return { status, hasHandle: pending.handle !== null, left: (await pendingUploads()).length };
      }, moduleURL);
      assert.deepEqual(result, { status: 201, hasHandle: true, left: 0 });
      assert.deepEqual(server.file(`${name}/stored.bin`), Buffer.alloc(4_000_000, 7));
    });

    test("a lost network is noticed at once, and the upload continues at once when it is back", async (context) => {
      const chosen = file("offline.bin", 8_000_000);
      await open();
      if (!(await page.evaluate(() => navigator.onLine))) return context.skip("this machine has only loopback");
      await page.choose("#file", [chosen.path]);
      proxy.hold(5_000_000);
      await begin(page, `${proxy.url}/files/${name}/offline.bin`, { appendSize: 2_000_000 });
      await page.waitFor(() => transfer.acknowledged >= 4_000_000);
      await page.setOffline(true);
      await page.waitFor(() => transfer.state === "offline", { seconds: 5 });
      proxy.release();
      await page.setOffline(false);
      await page.waitFor(() => transfer.state !== "offline", { seconds: 5 });
      assert.equal((await outcome(page)).status, 201);
      assert.equal(hash(server.file(`${name}/offline.bin`)), chosen.sha256);
    });

    test("a large file arrives although the server is killed twice", async () => {
      const chosen = file("large.bin", LARGE);
      await open();
      proxy.hold(0.3 * LARGE);
      await page.choose("#file", [chosen.path]);
      await begin(page, `${proxy.url}/files/${name}/large.bin`, { digest: true, retries: 50 });
      for (const part of [0.2, 0.6]) {
        await page.waitFor((bytes) => transfer.sent > bytes, { parameters: [part * LARGE], seconds: 120 });
        await server.crash();
        assert.notEqual(await page.evaluate(() => transfer.state), "completed");
        // The first time, at most so much is left that the upload cannot complete before the second crash.
        proxy.hold(part < 0.6 ? 0.65 * LARGE : Infinity);
        await server.restart();
      }
      // Firefox repeats a request itself, so that the module does not notice each interruption.
      const { digest } = await outcome(page, 600);
      assert.deepEqual(digest, { sha256: chosen.sha256, isVerified: true });
    });

    test("pause, resume and cancel", async () => {
      const chosen = file("controls.bin", 8_000_000);
      await open();
      await page.choose("#file", [chosen.path]);
      proxy.hold(3_000_000);
      await begin(page, `${proxy.url}/files/${name}/controls.bin`, { appendSize: 2_000_000 });
      await page.waitFor(() => transfer.acknowledged >= 2_000_000);
      await page.evaluate(() => transfer.pause());
      await page.waitFor(() => transfer.state === "paused");
      const { acknowledged } = await progress(page);
      proxy.hold(3_000_000);
      await page.evaluate(() => transfer.resume());
      await page.waitFor((bytes) => transfer.acknowledged > bytes, { parameters: [acknowledged] });
      await page.evaluate(() => transfer.cancel());
      assert.equal((await outcome(page)).code, "canceled");
      assert.ok(await until(() => server.requests(" DELETE /uploads/", " 204")));
      assert.equal(await page.evaluate(async (module) => (await (await import(module)).pendingUploads()).length, moduleURL), 0);
    });

    test("a page without workers computes the digest itself", async () => {
      const chosen = file("strict.bin", 6_000_000);
      await open("/strict");
      await page.choose("#file", [chosen.path]);
      await countWorkers(page);
      await begin(page, `${server.url}/files/${name}/strict.bin`, { digest: true });
      assert.deepEqual((await outcome(page)).digest, { sha256: chosen.sha256, isVerified: true });
      assert.equal(await page.evaluate(() => workers), 0);
    });

    test("errors of the server have their problem document", async () => {
      const chosen = file("exists.bin", 1000);
      await open();
      await page.choose("#file", [chosen.path]);
      await begin(page, `${server.url}/files/${name}/exists.bin`);
      await outcome(page);
      await begin(page, `${server.url}/files/${name}/exists.bin`, { creationHeaders: { "If-None-Match": "*" } });
      const error = await outcome(page);
      assert.deepEqual([error.name, error.code, error.problem.code], ["UploadError", "refused", "precondition-failed"]);
    });

    test("a token that the server does not accept any more is replaced, and the upload continues", async () => {
      const tokens = join(directory, `tokens-${name}`);
      const write = (token) => writeFileSync(tokens, `a ${token} create,write,read\n`, { mode: 0o600 });
      write("first-token-0123456789");
      const secured = await Server.start(["--cors-origin", pages.url, "--token-file", tokens]);
      const slow = await FaultProxy.start(secured.port);
      slow.hold(1_500_000);
      const chosen = file("token.bin", 4_000_000);
      await open();
      await page.choose("#file", [chosen.path]);
      await page.evaluate(async (module, target) => {
        const { upload } = await import(module);
        window.asked = [];
        window.outcome = null;
        const token = ({ isRejected }) => {
          asked.push(isRejected);
          return isRejected ? "second-token-0123456789" : "first-token-0123456789";
        };
        window.transfer = upload(file.files[0], target, { token, appendSize: 1_000_000 });
        transfer.finished.then((result) => (outcome = result), ({ code, message }) => (outcome = { code, message }));
      }, moduleURL, `${slow.url}/files/token.bin`);
      await page.waitFor(() => transfer.acknowledged >= 1_000_000);
      write("second-token-0123456789");
      secured.process.kill("SIGHUP");
      slow.release();
      assert.equal((await outcome(page)).status, 201);
      assert.deepEqual(await page.evaluate(() => asked), [false, true]);
      assert.equal(hash(secured.file("token.bin")), chosen.sha256);
    });

    test("a page of an origin that is not allowed can load the module, but not upload, read or remove files", async () => {
      writeFileSync(join(server.directory, "data/files/secret.txt"), "secret");
      page = await browser.open(pages.otherUrl);
      await page.choose("#file", [file("foreign.bin", 1000).path]);
      await begin(page, `${server.url}/files/foreign.bin`, { retries: 0 });
      assert.equal((await outcome(page)).code, "exhausted");
      const results = await page.evaluate(async (base) => {
        const attempt = async (options) => {
          try {
            return (await fetch(`${base}/files/secret.txt`, options)).type;
          } catch (error) {
            return error.name;
          }
        };
        return [await attempt({}), await attempt({ method: "PUT", body: "x" }), await attempt({ method: "DELETE" }),
          await fetch(`${base}/files/`, { method: "POST", mode: "no-cors", body: "x" }).then(({ type }) => type)];
      }, server.url);
      assert.deepEqual(results, ["TypeError", "TypeError", "TypeError", "opaque"]);
      assert.equal(server.file("secret.txt").toString(), "secret");
      assert.ok(!server.names().includes("foreign.bin"));
      await until(() => server.requests(" POST /files/", " 403 foreign-origin"));
    });
  });
}
