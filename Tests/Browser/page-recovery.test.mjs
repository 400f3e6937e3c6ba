// Uploads of the page for people that are interrupted in every way.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, beforeEach, describe, test } from "node:test";
import { browsers, launch } from "./kit/browser.mjs";
import {
  awaitDialog, awaitEntry, awaitPage, awaitUpload, hash, hashFile, pressUpload, uploadNames, writeFile, writeSparseFile,
} from "./kit/people.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);

const directory = temporaryDirectory("onward-recovery-");
const file = (name, size) => writeFile(directory, name, size, random);

for (const name of browsers) {
  describe(name, { timeout: 900_000 }, () => {
    let browser, server, proxy;
    endWithTests();
    before(async () => {
      browser = await launch(name);
      server = await Server.start(["--max-append-size", "2M"]);
      proxy = await FaultProxy.start(server.port);
    });
    beforeEach(() => proxy.release());

    async function open(path = "/", { base = proxy, from = browser } = {}) {
      const page = await from.open(base.url + path);
      await awaitPage(page);
      return page;
    }

    test("a lost network is shown at once, and the upload continues at once when it is back", async (context) => {
      const sent = file("offline.bin", 6_000_000);
      const page = await open("/files/offline/");
      if (!(await page.evaluate(() => navigator.onLine))) return context.skip("this machine has only loopback");
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await page.setOffline(true);
      await awaitUpload(page, sent.name, "offline", { seconds: 5 });
      assert.equal(await page.evaluate(() => document.querySelector("#banner[role=alert]:not([hidden])").textContent),
        "No connection. Uploads resume when it is back.");
      proxy.release();
      await page.setOffline(false);
      await page.waitFor(() => document.querySelector("#banner").hidden, { seconds: 5 });
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(`offline/${sent.name}`)), sent.sha256);
    });

    test("an upload is resumed after the browser was killed and started again", async () => {
      const sent = file("killed.bin", 6_000_000);
      const profile = temporaryDirectory("onward-profile-");
      const first = await launch(name, { profile });
      let page = await open("/files/killed/", { from: first });
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      // The browser writes its database some time later.
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1000)));
      await first.kill();
      proxy.release();
      const second = await launch(name, { profile });
      page = await open("/", { from: second });
      await awaitUpload(page, sent.name, "interrupted");
      // The person chooses the file as for a new upload, in another folder than before.
      await page.evaluate(() => document.querySelector("#upload-rows button").click());
      await page.choose("#again-input", [sent.path]);
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(`killed/${sent.name}`)), sent.sha256);
    });

    test("choosing the same file for the same folder resumes its upload", async () => {
      const sent = file("again.bin", 6_000_000);
      const page = await open("/files/again/");
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      await page.reload();
      await awaitPage(page);
      await awaitUpload(page, sent.name, "interrupted");
      const before = server.requests(" PUT /files/again/");
      proxy.release();
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "completed");
      assert.equal(server.requests(" PUT /files/again/"), before, "no second upload was created");
      await until(async () => (await uploadNames(page)).length === 1);
      assert.equal(hash(server.file(`again/${sent.name}`)), sent.sha256);
    });

    test("a crashed tab leaves an upload that the next tab resumes", async () => {
      const sent = file("crashed.bin", 6_000_000);
      // In Firefox all tabs crash.
      const crashing = await launch(name);
      const first = await open("/files/crashed/", { from: crashing });
      proxy.hold(3_000_000);
      await first.choose("#files-input", [sent.path]);
      await awaitUpload(first, sent.name, "uploading", { beyond: 0.3 });
      await first.crash();
      proxy.release();
      const page = await open("/files/crashed/", { from: crashing });
      await awaitUpload(page, sent.name, "interrupted");
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [sent.path]);
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(`crashed/${sent.name}`)), sent.sha256);
    });

    test("if the storage of the browser is full, uploads still arrive", async () => {
      const full = await launch(name, { preferences: { "dom.quotaManager.temporaryStorage.fixedLimit": 10_240 } });
      const page = await open("/files/full/", { from: full });
      if (name === "chromium") await page.cdp("Storage.overrideQuotaForOrigin", { origin: proxy.url, quotaSize: 1_000_000 });
      const count = await page.evaluate(async () => {
        const open = (name, store) => new Promise((resolve, reject) => {
          const request = indexedDB.open(name, 1);
          request.onupgradeneeded = () => request.result.createObjectStore(store, { keyPath: "id" });
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
        window.recordCount = async () => {
          // Firefox cannot open the database then.
          const database = await open("onward", "uploads").catch(() => null);
          return !database ? 0 : await new Promise((resolve, reject) => {
            const request = database.transaction("uploads").objectStore("uploads").count();
            request.onsuccess = () => (database.close(), resolve(request.result));
            request.onerror = () => reject(request.error);
          });
        };
        const database = await open("fill", "pieces");
        let count = 0;
        for (const size of [60_000, 6000, 600, 60, 1]) {
          for (let isStored = true; isStored && count < 10_000;) {
            const bytes = crypto.getRandomValues(new Uint8Array(size));
            // In Firefox, an operation after the first failure can throw.
            isStored = await new Promise((resolve, reject) => {
              const transaction = database.transaction("pieces", "readwrite");
              transaction.objectStore("pieces").put({ id: (count += 1), bytes });
              transaction.oncomplete = () => resolve(true);
              transaction.onabort = transaction.onerror = () => reject(transaction.error);
            }).catch(() => false);
          }
        }
        return count;
      });
      assert.ok(count > 5 && count < 10_000, `${count} pieces`);
      const sent = file("full.bin", 6_000_000);
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      // In Firefox a small record can still be stored.
      if (name === "chromium") assert.equal(await page.evaluate(() => recordCount()), 0);
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      proxy.release();
      await pressUpload(page, sent.name, "Resume");
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(`full/${sent.name}`)), sent.sha256);
    });

    test("two tabs with the same file write one file, and the second tab does not offer what the first one sends", async () => {
      const sent = file("tabs.bin", 6_000_000);
      const [one, two] = [await open("/files/tabs/"), await open("/files/tabs/")];
      proxy.hold(3_000_000);
      await one.choose("#files-input", [sent.path]);
      await awaitUpload(one, sent.name, "uploading", { beyond: 0.3 });
      await two.reload();
      await awaitPage(two);
      assert.deepEqual(await uploadNames(two), []);
      await two.choose("#files-input", [sent.path]);
      proxy.release();
      await awaitUpload(one, sent.name, "completed");
      // The second tab gets the result of the first one, or finds that the name exists.
      await awaitUpload(two, sent.name, ["completed", "exists"]);
      assert.deepEqual(server.names("tabs"), [sent.name]);
      assert.equal(hash(server.file(`tabs/${sent.name}`)), sent.sha256);
    });

    test("a stored handle resumes the upload with one click", async () => {
      // The handles of the origin-private file system need no permission, which a test could not give.
      const page = await open("/files/handles/");
      const provide = () => page.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        const handle = await root.getFileHandle("stored.bin", { create: true });
        if ((await handle.getFile()).size === 0) {
          const writable = await handle.createWritable();
          await writable.write(new Uint8Array(6_000_000).fill(7));
          await writable.close();
        }
        window.showOpenFilePicker = async () => [handle];
      });
      await provide();
      proxy.hold(3_000_000);
      await page.click("#choose-files");
      await awaitUpload(page, "stored.bin", "uploading", { beyond: 0.3 });
      await pressUpload(page, "stored.bin", "Pause");
      await awaitUpload(page, "stored.bin", "paused");
      await page.reload();
      await awaitPage(page);
      assert.match(await awaitUpload(page, "stored.bin", "interrupted"), /^Interrupted at [\d.]+ MB of 6\.0 MB$/);
      proxy.release();
      await pressUpload(page, "stored.bin", "Resume");
      await awaitUpload(page, "stored.bin", "completed");
      assert.deepEqual(server.file("handles/stored.bin"), Buffer.alloc(6_000_000, 7));
    });

    test("a full quota is explained, and the upload continues when there is space again", async () => {
      const tokens = join(directory, `quota-${name}`);
      const token = "quota-token-0123456789";
      writeFileSync(tokens, `anna ${token} read,write\n`, { mode: 0o600 });
      const small = await Server.start(["--token-file", tokens, "--quota", "5M"]);
      const [one, two] = [file("one.bin", 4_000_000), file("two.bin", 3_000_000)];
      const page = await open("/", { base: small });
      await page.click("#notice button");
      await awaitDialog(page);
      await page.type(token);
      await page.press("Enter");
      await page.waitFor(() => document.querySelector("#choose-files").checkVisibility());
      await page.choose("#files-input", [one.path]);
      await awaitUpload(page, one.name, "completed");
      await page.choose("#files-input", [two.path]);
      assert.match(await page.waitFor(() =>
        Array.from(document.querySelectorAll("#upload-rows .waiting .status"), ({ textContent }) => textContent).find((text) => / next /.test(text))), /^Your storage on the server is full\. .* next attempt in/);
      await awaitEntry(page, one.name);
      await page.evaluate(() => document.querySelector("[data-delete]").click());
      await awaitDialog(page);
      await page.click("dialog button[value=delete]");
      await page.waitFor(() => document.querySelectorAll("#entries tbody tr").length === 0);
      await pressUpload(page, two.name, "Try again");
      await awaitUpload(page, two.name, "completed");
      assert.equal(hash(small.file(two.name)), two.sha256);
      await page.close();
    });

    test("how much one long request has sent is shown while the server is away and after a reload, and not discarded unasked", async () => {
      const long = await Server.start();
      const proxy = await FaultProxy.start(long.port, () => (proxy.endsAtCut ? 150_000_000 : null));
      proxy.endsAtCut = true;
      const sent = writeSparseFile(directory, "long.bin", 400_000_000, [200_000_000], random);
      const megabytes = async (pattern) => {
        const found = await page.waitFor((source) => {
          const status = document.querySelector("#upload-rows .status").textContent;
          return new RegExp(source).exec(status)?.[1] ?? (/^Uploaded/.test(status) && "0");
        }, { parameters: [pattern.source], seconds: 60 });
        return Number(found);
      };
      const page = await open("/", { base: proxy });
      // The module remembers the bytes every five seconds; for this page they are 0.2 seconds.
      await browser.send("script.addPreloadScript", {
        functionDeclaration: `() => {
          const now = Date.now;
          const start = now();
          Date.now = () => start + (now() - start) * 25;
        }`, contexts: [page.context],
      });
      await page.reload();
      await awaitPage(page);
      await page.choose("#files-input", [sent.path]);
      const shown = await megabytes(/^The server cannot be reached\. ([\d.]+) M?B of 400 MB/);
      assert.ok(shown > 100 && shown < 400, `${shown} MB`);
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      proxy.endsAtCut = false;
      proxy.restore();
      await page.reload();
      await awaitPage(page);
      const remembered = await megabytes(/^Interrupted at ([\d.]+) M?B of 400 MB/);
      assert.ok(remembered > 10 && remembered < 400, `${remembered} MB`);
      await pressUpload(page, sent.name, "Discard");
      await awaitDialog(page);
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [sent.path]);
      await awaitUpload(page, sent.name, "completed", { seconds: 300 });
      assert.equal(await hashFile(join(long.directory, "data/files", sent.name)), await hashFile(sent.path));
      await page.close();
      rmSync(sent.path);
    });

    test("if the server has removed an interrupted upload, a name that exists by now is asked about", async () => {
      const sent = file("removed.bin", 6_000_000);
      const page = await open("/files/removed/");
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      await page.evaluate(async () => {
        const database = await new Promise((resolve) => {
          const request = indexedDB.open("onward");
          request.onsuccess = () => resolve(request.result);
        });
        const records = await new Promise((resolve) => {
          const request = database.transaction("uploads").objectStore("uploads").getAll();
          request.onsuccess = () => resolve(request.result);
        });
        const { url } = records.find(({ name }) => name === "removed.bin");
        await fetch(url, { method: "DELETE" });
      });
      mkdirSync(join(server.directory, "data/files/removed"), { recursive: true });
      writeFileSync(join(server.directory, "data/files/removed/removed.bin"), "of another person");
      proxy.release();
      await page.reload();
      await awaitPage(page);
      await awaitUpload(page, sent.name, "interrupted");
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [sent.path]);
      const end = await page.waitFor(() => {
        const { className } = document.querySelector("#upload-rows li");
        return ["exists", "completed", "failed"].find((state) => className.includes(state));
      });
      assert.equal(end, "exists");
      assert.equal(server.file("removed/removed.bin").toString(), "of another person");
      await pressUpload(page, sent.name, "Replace");
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file("removed/removed.bin")), sent.sha256);
    });

    test("a request that fails after the network is back does not show that there is no connection", async () => {
      const page = await open();
      await page.evaluate(() => {
        window.isOnline = false;
        Object.defineProperty(navigator, "onLine", { configurable: true, get: () => isOnline });
        const send = window.fetch;
        window.fetch = (url, options) =>
          String(url).endsWith("healthz") ? new Promise((_, reject) => (window.fail = reject)) : send(url, options);
        dispatchEvent(new Event("offline"));
      });
      await page.waitFor(() => "fail" in window);
      await page.evaluate(async () => {
        isOnline = true;
        dispatchEvent(new Event("online"));
        fail(new TypeError("no network"));
        await new Promise((resolve) => setTimeout(resolve, 100));
      });
      assert.equal(await page.evaluate(() => document.getElementById("banner").hidden), true);
      await page.evaluate(() => {
        isOnline = false;
        dispatchEvent(new Event("offline"));
        fail(new TypeError("no network"));
      });
      await page.waitFor(() => !document.getElementById("banner").hidden);
    });

    test("discarding an interrupted upload removes it from the server", async () => {
      const sent = file("discarded.bin", 6_000_000);
      const page = await open("/files/discarded/");
      proxy.hold(3_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      await page.reload();
      await awaitPage(page);
      await awaitUpload(page, sent.name, "interrupted");
      const before = server.requests(" DELETE /uploads/", " 204");
      await pressUpload(page, sent.name, "Discard");
      await page.waitFor(() => document.querySelectorAll("#upload-rows li").length === 0);
      await until(() => server.requests(" DELETE /uploads/", " 204") === before + 1);
    });

    test("a folder is dropped from the disk", { skip: name !== "chromium" }, async () => {
      const folder = join(directory, "dropped folder");
      mkdirSync(join(folder, "inner/empty"), { recursive: true });
      writeFileSync(join(folder, "a.txt"), "a");
      writeFileSync(join(folder, "inner/b.txt"), "b");
      const page = await open("/files/drops/");
      const data = { items: [], files: [folder], dragOperationsMask: 1 };
      for (const type of ["dragEnter", "dragOver", "drop"]) {
        await page.cdp("Input.dispatchDragEvent", { type, x: 300, y: 300, data });
        if (type === "dragOver") {
          assert.equal(await page.evaluate(() => document.querySelector("#drop-target:not([hidden])").textContent.replace(/[\u2068\u2069]/g, "")),
            "Upload into drops");
        }
      }
      await page.waitFor(() => document.querySelectorAll("#upload-rows .completed").length === 2);
      assert.equal(server.file("drops/dropped folder/a.txt").toString(), "a");
      assert.equal(server.file("drops/dropped folder/inner/b.txt").toString(), "b");
      await awaitEntry(page, "dropped folder");
    });
  });
}
