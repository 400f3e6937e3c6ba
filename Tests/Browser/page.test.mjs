// The page for people in real browsers.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, beforeEach, describe, test } from "node:test";
import { browsers, launch } from "./kit/browser.mjs";
import {
  awaitDialog, awaitEntry, awaitPage, awaitUpload, focused, hash, pressUpload, shownNames, uploadNames, writeFile,
} from "./kit/people.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);
const LARGE = Number(process.env.ONWARD_BROWSER_SIZE ?? 1_000_000_000);
const TOKEN = "a-token-0123456789abcdef";
const NAMES = [
  `"quotes" & 'apostrophes'.txt`, "<script>alert(1)<\u2044script>.txt", "<img src=x onerror=alert(1)>", "a&amp;b.txt",
  "percent %2F %00.txt", "question?.txt", "hash#tag.txt", "  two  spaces  .txt", "plus+and;semi:colon.txt", "~*.txt",
  "emoji 👩‍👩‍👧‍👦 🎉.txt", "שלום עולם.txt", "{{rows}} $& $1.txt", "..hidden", "evil\u202Egnp.exe", "zero\u200Bwidth.txt",
  `${"x".repeat(200)}.txt`, "ﬁle ①.txt", "e\u0301 é.txt",
];

const directory = temporaryDirectory("onward-page-");
const file = (name, size) => writeFile(directory, name, size, random);

/** Puts a file into the server's directory. */
function publish(server, name, content = "x") {
  const path = join(server.directory, "data/files", name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
}

for (const name of browsers) {
  describe(name, { timeout: 900_000 }, () => {
    let browser, server, proxy, page;
    endWithTests();
    before(async () => {
      browser = await launch(name);
      // Small requests, so that an upload has progress while the proxy holds it.
      server = await Server.start(["--max-append-size", "2M"]);
      proxy = await FaultProxy.start(server.port);
    });
    beforeEach(() => proxy.release());

    const open = async (path = "/", base = proxy) => {
      page = await browser.open(base.url + path);
      await awaitPage(page);
      return page;
    };
    const chosen = (paths) => page.choose("#files-input", paths);
    const noErrors = () => assert.deepEqual(page.messages.filter((message) =>
      /^error/.test(message) && !/favicon|Failed to load resource/.test(message)), []);

    test("folders are shown, sorted, searched and opened without loading the page again", async () => {
      publish(server, "list/b.txt", "12345");
      publish(server, "list/a10.txt", "1");
      publish(server, "list/a9.txt", "22");
      publish(server, "list/sub/inner/deep.txt");
      await open("/");
      await page.evaluate(() => (window.isSame = true));
      await page.evaluate(() => Array.from(document.querySelectorAll("tbody a")).find((link) => link.textContent === "list").click());
      await awaitEntry(page, "a9.txt");
      assert.deepEqual(await shownNames(page), ["sub", "a9.txt", "a10.txt", "b.txt"]);
      assert.equal(await page.evaluate(() => location.pathname), "/files/list/");
      await page.click("th[data-sort=size] button");
      assert.deepEqual(await shownNames(page), ["sub", "b.txt", "a9.txt", "a10.txt"]);
      assert.equal(await page.evaluate(() => document.querySelector("th[data-sort=size]").getAttribute("aria-sort")), "descending");
      await page.click("#search");
      await page.type("A txt");
      await page.waitFor(() => document.querySelectorAll("tbody tr:not([hidden])").length === 2);
      assert.deepEqual(await shownNames(page), ["a9.txt", "a10.txt"]);
      await page.evaluate(() => history.back());
      await awaitEntry(page, "list");
      assert.equal(await page.evaluate(() => location.pathname), "/");
      // The focus is on the folder from which the person came.
      await page.waitFor(() => document.activeElement.textContent === "list");
      assert.equal(await page.evaluate(() => window.isSame), true);
      await open("/files/list/sub/inner/");
      assert.deepEqual(await page.evaluate(() => Array.from(document.querySelectorAll("#path a"), (link) => link.textContent)),
        ["Files", "list", "sub"]);
      assert.equal(await page.evaluate(() => document.querySelector("h1").textContent), "inner");
      noErrors();
    });

    test("names with every kind of character are shown as text, and their links have the right content", async () => {
      for (const one of NAMES) publish(server, `names/${one}`, one);
      publish(server, "names/fo#ld?er %41 <b>/inside.txt", "inside");
      const expected = NAMES.map((one) => one.replace(/[\u202E\u200B]/, (letter) => `[U+${letter.codePointAt(0).toString(16).toUpperCase()}]`));
      // Once as the server writes the rows, once as the page does.
      for (const isLoaded of [true, false]) {
        await open(isLoaded ? "/files/names/" : "/");
        if (!isLoaded) {
          await page.evaluate(() => Array.from(document.querySelectorAll("tbody a")).find((link) => link.textContent === "names").click());
          await awaitEntry(page, "..hidden");
        }
        assert.deepEqual((await shownNames(page)).sort(), [...expected, "fo#ld?er %41 <b>"].sort());
        const contents = await page.evaluate(() => Promise.all(Array.from(document.querySelectorAll("tbody tr.file td:first-child a"),
          async (link) => [link.textContent, await (await fetch(link.href)).text()])));
        for (const [shown, content] of contents) assert.equal(expected[NAMES.indexOf(content)], shown);
        assert.equal(contents.length, NAMES.length);
        assert.equal(await page.evaluate(() => document.querySelectorAll("tbody :is(script, img, b)").length), 0);
      }
      await page.evaluate(() => document.querySelector("tbody tr.folder a").click());
      await awaitEntry(page, "inside.txt");
      assert.equal(await page.evaluate(() => document.querySelector("h1").textContent), "fo#ld?er %41 <b>");
      await page.evaluate(() => document.querySelectorAll("#path a")[1].click());
      await awaitEntry(page, "..hidden");
      assert.deepEqual(page.prompts, []);
      noErrors();
    });

    test("files with names of every kind are uploaded under these names, and kept beside those that exist", async () => {
      const sent = new Map(NAMES.map((one, index) => [one, file(one, index % 3 === 0 ? 300_000 + index : 1000 + index)]));
      const sendAll = async (count) => {
        await chosen([...sent.values()].map(({ path }) => path));
        if (count > NAMES.length) {
          await awaitDialog(page);
          await page.click("#for-all");
          await page.click("dialog button[value=keep]");
        }
        await page.waitFor((count) => document.getElementById("uploads-summary").textContent === `${count} of ${count} uploaded`,
          { parameters: [count], seconds: 60 });
      };
      await open("/files/sent names/");
      await sendAll(NAMES.length);
      const folder = () => new Map(server.names("sent names").map((one) => [one, hash(server.file(`sent names/${one}`))]));
      const first = folder();
      assert.deepEqual([...first].sort(), [...sent].map(([one, { sha256 }]) => [one, sha256]).sort());
      await sendAll(NAMES.length * 2);
      const both = folder();
      assert.equal(both.size, NAMES.length * 2);
      for (const [one, digest] of first) assert.equal(both.get(one), digest);
      const kept = [...both].filter(([one]) => !first.has(one)).map(([, digest]) => digest);
      assert.deepEqual(kept.sort(), [...first.values()].sort());
      noErrors();
    });

    test("a name that the server cannot have is explained, and does not stop the other files", async () => {
      await open("/files/refused/");
      await page.evaluate(() => {
        const transfer = new DataTransfer();
        for (const name of ["a\nb.txt", "a\\b.txt", `${"x".repeat(256)}.txt`, "good.txt"]) transfer.items.add(new File(["x"], name));
        const input = document.getElementById("files-input");
        input.files = transfer.files;
        input.dispatchEvent(new Event("change"));
      });
      await awaitUpload(page, "good.txt", "completed");
      await page.waitFor(() => document.querySelectorAll("#upload-rows .failed").length === 3);
      const reasons = await page.evaluate(() => Array.from(document.querySelectorAll("#upload-rows .failed .status"), (one) => one.textContent));
      assert.deepEqual(new Set(reasons), new Set(["The server cannot store a file with this name."]));
      assert.deepEqual(server.names("refused"), ["good.txt"]);
    });

    test("the browser warns before a tab with an unfinished upload is reloaded or closed, and only then", async () => {
      const sent = file("warned.bin", 6_000_000);
      await open("/files/warned/");
      // Browsers show no prompt before a person has used the page.
      await page.click("h1");
      await page.reload();
      await awaitPage(page);
      assert.deepEqual(page.prompts, []);
      await page.click("h1");
      proxy.hold(3_000_000);
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await awaitUpload(page, sent.name, "paused");
      await page.reload();
      await awaitPage(page);
      assert.deepEqual(page.prompts, ["beforeunload"]);
      // What an earlier page began is not lost if this page is closed.
      await awaitUpload(page, sent.name, "interrupted");
      await page.click("h1");
      await page.reload();
      await awaitPage(page);
      assert.deepEqual(page.prompts, ["beforeunload"]);
      await page.click("h1");
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await page.closeWithPrompt();
      await until(() => page.prompts.length === 2);
      await open("/files/warned/");
      await awaitUpload(page, sent.name, "interrupted");
      proxy.release();
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(`warned/${sent.name}`)), sent.sha256);
    });

    test("an upload is paused, resumed after a reload with the same file, and arrives unchanged", async () => {
      const sent = file("ein größeres.bin", 6_000_000);
      const other = file("other.bin", 6_000_000);
      await open("/files/inbox/");
      proxy.hold(3_000_000);
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      assert.match(await awaitUpload(page, sent.name, "paused"), /^Paused at .* MB of 6\.0 MB$/);
      await page.reload();
      await awaitPage(page);
      assert.match(await awaitUpload(page, sent.name, "interrupted"), /choose the file again/);
      proxy.release();
      const before = server.requests(" PUT /files/inbox/");
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [other.path]);
      await page.waitFor(() => document.querySelector("#upload-rows .status").textContent.startsWith("This is another file."));
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [sent.path]);
      assert.equal(await awaitUpload(page, sent.name, "completed"), "Uploaded · 6.0 MB");
      await awaitEntry(page, sent.name);
      assert.equal(hash(server.file(`inbox/${sent.name}`)), sent.sha256);
      assert.equal(server.requests(" PUT /files/inbox/"), before, "no second upload was created");
      // Nothing is offered any more.
      await page.reload();
      await awaitPage(page);
      assert.deepEqual(await uploadNames(page), []);
      noErrors();
    });

    test("an upload continues in the background of other folders, and after the server was killed twice", async () => {
      const sent = file("large.bin", LARGE);
      const large = await Server.start();
      publish(large, "elsewhere/a.txt");
      const slow = await FaultProxy.start(large.port);
      await open("/", slow);
      slow.hold(0.3 * LARGE);
      await chosen([sent.path]);
      for (const part of [0.2, 0.6]) {
        await awaitUpload(page, sent.name, "uploading", { beyond: part, seconds: 120 });
        await large.crash();
        await awaitUpload(page, sent.name, "waiting");
        // The first time, at most so much is left that the upload cannot complete before the second crash.
        slow.hold(part < 0.6 ? 0.65 * LARGE : Infinity);
        await large.restart();
        await page.evaluate(() => Array.from(document.querySelectorAll("tbody a, #path a")).find(({ textContent }) =>
          ["elsewhere", "Files"].includes(textContent)).click());
        await awaitPage(page);
      }
      await awaitUpload(page, sent.name, "completed", { seconds: 300 });
      assert.equal(hash(large.file(sent.name)), sent.sha256);
      await page.close();
    });

    test("a name that exists is replaced, kept beside, or skipped, as the person decides", async () => {
      const one = file("one.txt", 10);
      const two = file("two.txt", 20);
      const three = file("three.txt", 30);
      for (const { name } of [one, two, three]) publish(server, `exists/${name}`, "old");
      await open("/files/exists/");
      await chosen([one.path, two.path, three.path]);
      assert.equal((await awaitDialog(page)).replace(/[\u2068\u2069]/g, ""), "one.txt exists already");
      await page.click("dialog button[value=replace]");
      await page.waitFor(() => document.querySelector("dialog h2")?.textContent.includes("two.txt"));
      await page.click("dialog button[value=skip]");
      await page.waitFor(() => document.querySelector("dialog h2")?.textContent.includes("three.txt"));
      await page.click("dialog button[value=keep]");
      await page.waitFor(() => document.querySelectorAll("#upload-rows .completed").length === 2);
      assert.equal(hash(server.file("exists/one.txt")), one.sha256);
      assert.equal(server.file("exists/two.txt").toString(), "old");
      assert.equal(server.file("exists/three.txt").toString(), "old");
      const kept = server.names("exists").filter((name) => !["one.txt", "two.txt", "three.txt"].includes(name));
      assert.equal(kept.length, 1);
      assert.equal(hash(server.file(`exists/${kept[0]}`)), three.sha256);
      await awaitEntry(page, kept[0]);
      // Cancel uploads none of the chosen files.
      await chosen([file("new.txt", 10).path, one.path]);
      await awaitDialog(page);
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      assert.ok(!(await uploadNames(page)).includes("new.txt"));
      // A file that appears after the folder was loaded is not replaced either.
      const late = file("late.txt", 40);
      publish(server, "exists/late.txt", "old");
      await chosen([late.path]);
      await awaitUpload(page, "late.txt", "exists");
      assert.equal(server.file("exists/late.txt").toString(), "old");
      await pressUpload(page, "late.txt", "Replace");
      await awaitUpload(page, "late.txt", "completed");
      assert.equal(hash(server.file("exists/late.txt")), late.sha256);
      noErrors();
    });

    test("a folder is uploaded with its folders, and many small files at once with one request for each", async () => {
      await open("/files/many-uploads/");
      const appends = server.requests(" PATCH ");
      await page.evaluate(() => {
        const transfer = new DataTransfer();
        for (let index = 0; index < 300; index += 1) transfer.items.add(new File([`content ${index}`], `file ${index}.txt`));
        const input = document.getElementById("files-input");
        input.files = transfer.files;
        input.dispatchEvent(new Event("change"));
      });
      await page.waitFor(() => document.getElementById("uploads-summary").textContent.startsWith("300 of 300"), { seconds: 120 });
      assert.equal(server.names("many-uploads").length, 300);
      assert.equal(server.file("many-uploads/file 299.txt").toString(), "content 299");
      await until(() => server.requests(" PUT /files/many-uploads/", " 201") === 300);
      assert.equal(server.requests(" /files/many-uploads/file"), 300);
      assert.equal(server.requests(" PATCH "), appends);
      await page.waitFor(() => document.querySelectorAll("#entries tbody tr").length === 300);
      assert.ok(await page.evaluate(() => document.querySelectorAll("#upload-rows li").length) <= 60);
      // A browser reports the paths of a chosen folder like this.
      await page.evaluate(() => {
        const inner = new File(["inner"], "inner.txt");
        Object.defineProperty(inner, "webkitRelativePath", { value: "tree/some folder/inner.txt" });
        const input = document.getElementById("folder-input");
        Object.defineProperty(input, "files", { value: [inner] });
        input.dispatchEvent(new Event("change"));
      });
      await awaitEntry(page, "tree");
      assert.equal(server.file("many-uploads/tree/some folder/inner.txt").toString(), "inner");
      noErrors();
    });

    test("the rate of an upload that does not progress falls, and the time that is left grows", async () => {
      await open("/files/stalled/");
      proxy.hold(0);
      await chosen([file("stalled.bin", 6_000_000).path]);
      const rate = () => page.evaluate(() => {
        const status = document.querySelector("#upload-rows .uploading .status")?.textContent;
        const [, number, unit] = /([\d.]+) (.?)B\/s · .* left$/.exec(status) ?? [];
        return Number(number ?? 0) * (({ k: 1e3, M: 1e6, G: 1e9 })[unit] ?? 1);
      });
      const first = await until(() => {
        proxy.hold(50_000);
        return rate();
      });
      proxy.hold(0);
      await until(async () => (await rate()) < first / 5);
    });

    test("a message about a failure is hidden when the person continues", async () => {
      publish(server, "failures/sub/a.txt");
      publish(server, "failures/b.txt");
      await open("/files/failures/");
      await page.evaluate(() => {
        const send = window.fetch;
        window.fetch = (url, options) => (options?.method === "DELETE" ? Promise.reject(new TypeError()) : send(url, options));
        document.querySelector("tr.file [data-delete]").click();
      });
      await awaitDialog(page);
      await page.click("dialog button[value=delete]");
      await page.waitFor(() => document.querySelector("#banner:not([hidden])")?.textContent.includes("was not deleted"));
      await page.evaluate(() => document.querySelector("tr.folder a").click());
      await awaitEntry(page, "a.txt");
      assert.equal(await page.evaluate(() => document.getElementById("banner").hidden), true);
    });

    test("files are dropped and pasted", async () => {
      await open("/files/dropped/");
      for (const type of ["drop", "paste"]) {
        await page.evaluate((type) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([type], `${type}.txt`, { lastModified: 1e12 }));
          // In Firefox a script cannot make a clipboard with files.
          const event = new Event(type, { bubbles: true, cancelable: true });
          Object.defineProperty(event, type === "drop" ? "dataTransfer" : "clipboardData", { value: transfer });
          document.body.dispatchEvent(event);
        }, type);
        await awaitEntry(page, `${type}.txt`);
        assert.equal(server.file(`dropped/${type}.txt`).toString(), type);
      }
      noErrors();
    });

    test("a token is asked for, decides what is offered, and can be replaced after a revocation in the middle of an upload", async () => {
      const tokens = join(directory, `tokens-${name}`);
      const write = (...lines) => writeFileSync(tokens, lines.join("\n") + "\n", { mode: 0o600 });
      const reader = "reader-token-0123456789";
      write(`anna ${TOKEN} read,write`, `rita ${reader} read`);
      const secured = await Server.start(["--token-file", tokens, "--max-append-size", "1M"]);
      publish(secured, "picture.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>`);
      publish(secured, "keep.txt", "kept");
      const slow = await FaultProxy.start(secured.port);
      await open("/", slow);
      assert.deepEqual(await shownNames(page), []);
      assert.equal(await page.evaluate(() => document.querySelector("#notice h2").textContent), "This server needs a token");
      await page.click("#notice button");
      await awaitDialog(page);
      await page.type("wrong-token-0123456789");
      await page.press("Enter");
      await page.waitFor(() => document.querySelector("#token-problem").textContent);
      await page.type(reader);
      await page.press("Enter");
      await awaitEntry(page, "keep.txt");
      // What this token may not do is not offered.
      const offered = () => page.evaluate(() => ["#choose-files", "#choose-folder", "[data-delete]"].map((one) =>
        document.querySelector(one).checkVisibility()));
      assert.deepEqual(await offered(), [false, false, false]);
      // Files can be pasted without a button.
      await page.evaluate(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["x"], "pasted.txt"));
        const event = new Event("paste", { bubbles: true, cancelable: true });
        Object.defineProperty(event, "clipboardData", { value: transfer });
        document.body.dispatchEvent(event);
      });
      await page.waitFor(() => document.querySelector("#banner:not([hidden])")?.textContent === "The token does not allow this.");
      assert.equal(await page.evaluate(() => localStorage.length), 0);
      await page.click("#sign-out");
      await page.waitFor(() => document.querySelector("#notice h2")?.textContent === "This server needs a token");
      await awaitPage(page);
      await page.click("#notice button");
      await awaitDialog(page);
      await page.type(TOKEN);
      await page.evaluate(() => document.getElementById("keep").click());
      await page.press("Enter");
      await awaitEntry(page, "keep.txt");
      assert.deepEqual(await offered(), [true, true, true]);
      assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length]), [1, 0]);
      // A picture is loaded with the cookie.
      await page.evaluate(() => document.querySelector("tr.image a").click());
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
      await page.press("Escape");
      const sent = file("secret.bin", 6_000_000);
      slow.hold(2_500_000);
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      write("anna second-token-0123456789 read,write");
      secured.process.kill("SIGHUP");
      slow.release();
      await awaitDialog(page);
      assert.match(await page.evaluate(() => document.querySelector("#token-problem").textContent), /any more/);
      await page.type("second-token-0123456789");
      await page.press("Enter");
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(secured.file(sent.name)), sent.sha256);
      await page.close();
    });

    test("a token for one folder shows that folder, and its cookie is renewed before it expires", async () => {
      const tokens = join(directory, `prefix-${name}`);
      writeFileSync(tokens, `paul ${TOKEN} read,write prefix=/files/inbox/\n`, { mode: 0o600 });
      const secured = await Server.start(["--token-file", tokens]);
      publish(secured, "inbox/letter.txt", "letter");
      await open("/", secured);
      // A quarter of an hour is over at once.
      await browser.send("script.addPreloadScript", {
        functionDeclaration: `() => {
          const start = window.setTimeout;
          window.setTimeout = (action, delay, ...values) => start(action, delay > 300_000 ? 300 : delay, ...values);
        }`, contexts: [page.context],
      });
      await page.reload();
      await awaitPage(page);
      await page.click("#notice button");
      await awaitDialog(page);
      await page.type(TOKEN);
      await page.press("Enter");
      await awaitEntry(page, "letter.txt");
      assert.equal(await page.evaluate(() => location.pathname), "/files/inbox/");
      await until(() => secured.requests(" POST /onward/session", " 200") >= 3);
      await page.close();
    });

    test("a folder with 10,000 files is sorted and searched, and a larger one by prefix", async () => {
      for (let index = 0; index < 10_000; index += 1) publish(server, `thousands/file ${index}.txt`, "");
      await open("/files/thousands/");
      assert.equal((await shownNames(page)).length, 10_000);
      assert.equal((await shownNames(page))[9999], "file 9999.txt");
      await page.click("#search");
      await page.type("999");
      await page.waitFor(() => document.querySelectorAll("tbody tr:not([hidden])").length === 19);
      await page.click("th[data-sort=name] button");
      assert.equal(await page.evaluate(() => document.querySelector("tbody td:first-child a").textContent), "file 9999.txt");
      const among = file("file 5.5.txt", 300_000);
      await chosen([among.path]);
      await awaitUpload(page, among.name, "completed");
      await page.click("#search");
      await page.press("Control+a");
      await page.type("file 5.5");
      await page.waitFor(() => document.querySelectorAll("tbody tr:not([hidden])").length === 1);
      await awaitEntry(page, among.name);
      assert.equal(hash(server.file(`thousands/${among.name}`)), among.sha256);
      for (let index = 0; index < 200; index += 1) publish(server, `thousands/another ${index}.txt`, "");
      await page.reload();
      await awaitPage(page);
      assert.equal((await shownNames(page)).length, 1000);
      assert.equal(await page.evaluate(() => document.querySelector("#count").textContent),
        "The first 1,000 entries in the order of their names");
      await page.evaluate(() => document.getElementById("more").click());
      await page.waitFor(() => document.querySelectorAll("tbody tr").length === 2000);
      assert.equal(new Set(await shownNames(page)).size, 2000);
      await page.evaluate(() => scrollTo(0, 0));
      await page.click("#search");
      await page.type("file 998");
      await page.waitFor(() => document.querySelectorAll("tbody tr").length === 11);
      assert.deepEqual((await shownNames(page)).slice(0, 2), ["file 998.txt", "file 9980.txt"]);
      // A name after those that the page has loaded is asked about, too.
      const late = file("file 9998.txt", 300_000);
      await chosen([late.path]);
      await awaitUpload(page, late.name, "exists");
      assert.equal(server.file(`thousands/${late.name}`).length, 0);
      await pressUpload(page, late.name, "Replace");
      await awaitUpload(page, late.name, "completed");
      assert.equal(hash(server.file(`thousands/${late.name}`)), late.sha256);
      noErrors();
    });

    test("everything works with the keyboard, and the focus is never lost", async () => {
      publish(server, "keys/a.txt");
      publish(server, "keys/b.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>`);
      publish(server, "keys/c.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="5"/>`);
      await open("/files/keys/");
      await page.press("Tab");
      assert.equal(await focused(page), "Skip to the files");
      const visited = [];
      for (let count = 0; count < 30 && !visited.includes("Delete \u2068c.svg\u2069"); count += 1) {
        await page.press("Tab");
        visited.push(await focused(page));
        assert.ok(await page.evaluate(() => document.activeElement.checkVisibility()), visited.at(-1));
      }
      for (const one of ["Files", "Upload files", "Upload folder", "Search in this folder", "Name", "Size", "Modified", "a.txt",
        "Delete \u2068a.txt\u2069", "b.svg", "Download \u2068b.svg\u2069"]) assert.ok(visited.includes(one), `${one}: ${visited}`);
      // From row to row, into a picture, to the next one, and back.
      await page.evaluate(() => document.querySelector("tbody a").focus());
      await page.press("ArrowDown");
      assert.equal(await focused(page), "b.svg");
      await page.press("Enter");
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
      await page.press("ArrowRight");
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 9);
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      assert.equal(await focused(page), "c.svg");
      // Deletion, first canceled: the focus is on Cancel.
      await page.press("ArrowUp", "ArrowUp", "Tab");
      assert.equal(await focused(page), "Delete \u2068a.txt\u2069");
      await page.press("Enter");
      await awaitDialog(page);
      assert.equal(await focused(page), "Cancel");
      await page.press("Enter");
      await page.waitFor(() => !document.querySelector("dialog"));
      assert.equal(await focused(page), "Delete \u2068a.txt\u2069");
      assert.deepEqual(server.names("keys"), ["a.txt", "b.svg", "c.svg"]);
      await page.press("Enter");
      await awaitDialog(page);
      await page.press("Shift+Tab", "Enter");
      await page.waitFor(() => document.activeElement.textContent === "b.svg");
      assert.deepEqual(server.names("keys"), ["b.svg", "c.svg"]);
      // An upload: pause, resume, discard.
      const sent = file("keyed.bin", 20_000_000);
      proxy.hold(13_000_000);
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.6 });
      await page.evaluate(() => document.querySelector("#upload-rows button").focus());
      await page.press("Enter");
      await awaitUpload(page, sent.name, "paused");
      assert.match(await focused(page), /^Resume: /);
      await page.press("Enter");
      await page.waitFor(() => document.activeElement.getAttribute("aria-label")?.startsWith("Pause: "));
      await page.press("Tab", "Enter");
      // A question is asked, because much was sent.
      await awaitDialog(page);
      await page.press("Shift+Tab", "Enter");
      await page.waitFor(() => document.querySelectorAll("#upload-rows li").length === 0);
      assert.notEqual(await page.evaluate(() => document.activeElement), "BODY");
      assert.ok(await page.evaluate(() => document.activeElement !== document.body));
      await until(() => server.requests(" DELETE /uploads/", " 204"));
      noErrors();
    });

    test("audio is played in the page", async () => {
      // One second of silence: RIFF, 8 bits, 8000 samples.
      const samples = Buffer.alloc(8000, 0x80);
      const head = Buffer.from("524946460000000057415645666d7420100000000100010040" + "1f0000401f00000100080064617461" + "00000000", "hex");
      head.writeUInt32LE(36 + samples.length, 4);
      head.writeUInt32LE(samples.length, 40);
      publish(server, "audio/tone.wav", Buffer.concat([head, samples]));
      await open("/files/audio/");
      await page.evaluate(() => document.querySelector("#entries tbody a").click());
      await page.waitFor(() => document.querySelector("dialog audio")?.readyState >= 1);
      assert.deepEqual(await page.evaluate(() => {
        const audio = document.querySelector("dialog audio");
        audio.muted = true;
        return [audio.duration, audio.controls, audio.getAttribute("aria-label")];
      }), [1, true, "tone.wav"]);
      await page.evaluate(() => document.querySelector("dialog audio").play());
      await page.waitFor(() => document.querySelector("dialog audio").ended);
      await page.press("Escape");
      noErrors();
    });

    test("screen readers get a message about each change of an upload", async () => {
      const limited = await Server.start(["--max-append-size", "1M", "--max-size", "7M"]);
      publish(limited, "heard/sub/a.txt");
      publish(limited, "heard/old.txt", "old");
      const slow = await FaultProxy.start(limited.port);
      await open("/", slow);
      await browser.send("script.addPreloadScript", {
        functionDeclaration: `() => {
          window.heard = [];
          new MutationObserver((records) => {
            for (const { target } of records) {
              const region = target.closest?.("[role=log], [role=alert], [role=status]");
              const text = region?.textContent.replace(/[\\u2068\\u2069]/g, "");
              if (text && text !== window.heard.at(-1)) window.heard.push(text);
            }
          }).observe(document, { childList: true, subtree: true });
        }`, contexts: [page.context],
      });
      await page.navigate(`${slow.url}/files/heard/`);
      await awaitPage(page);
      const hear = async (pattern, seconds = 30) => {
        await page.waitFor((source) => window.heard.some((text) => new RegExp(source).test(text)),
          { parameters: [pattern.source], seconds });
        await page.evaluate(() => { window.heard = []; });
      };
      const sent = file("heard.bin", 6_000_000);
      slow.hold(2_500_000);
      await chosen([sent.path]);
      await hear(/1 upload started\./);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      await pressUpload(page, sent.name, "Pause");
      await hear(/heard\.bin is paused\./);
      await awaitUpload(page, sent.name, "paused");
      await pressUpload(page, sent.name, "Resume");
      await hear(/heard\.bin is resumed\./);
      await limited.crash();
      await hear(/heard\.bin is interrupted, and continues by itself when that is possible: The server cannot be reached\./);
      slow.hold(1_000_000);
      await limited.restart();
      await hear(/heard\.bin is resumed\./, 60);
      await page.evaluate(() => document.getElementById("pause-all").click());
      await hear(/All uploads are paused\./);
      await awaitUpload(page, sent.name, "paused");
      await page.evaluate(() => document.getElementById("resume-all").click());
      await hear(/All uploads are resumed\./);
      await page.reload();
      await awaitPage(page);
      await hear(/1 interrupted upload can be resumed\./);
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [file("heard other.bin", 6_000_000).path]);
      await hear(/This is another file\./);
      slow.release();
      await pressUpload(page, sent.name, "Resume");
      await page.choose("#again-input", [sent.path]);
      await hear(/heard\.bin is uploaded\./, 60);
      assert.equal(hash(limited.file(`heard/${sent.name}`)), sent.sha256);
      await chosen([file("too large.bin", 7_100_000).path]);
      await hear(/too large\.bin is not uploaded: The file is larger than the server accepts\./);
      await pressUpload(page, "too large.bin", "Discard");
      await hear(/The upload of too large\.bin is discarded\./);
      publish(limited, "heard/late.txt", "old");
      await chosen([file("late.txt", 10).path]);
      await hear(/late\.txt exists already\. The list of uploads asks what to do\./);
      await page.click("#search");
      await page.type("old");
      await hear(/^1 of \d$/);
      await page.evaluate(() => Array.from(document.querySelectorAll("[data-delete]")).find((one) =>
        one.getAttribute("aria-label").includes("old.txt")).click());
      await awaitDialog(page);
      await page.click("dialog button[value=delete]");
      await hear(/old\.txt was deleted\./);
      await page.evaluate(() => document.querySelector("#path a").click());
      await hear(/Folder Files\. 1 folder/);
      await page.close();
    });

    test("the upload URLs are not in the document, and no request leaves the server", async () => {
      const sent = file("hidden.bin", 6_000_000);
      await open("/files/hidden/");
      proxy.hold(3_000_000);
      await chosen([sent.path]);
      await awaitUpload(page, sent.name, "uploading", { beyond: 0.3 });
      assert.ok(!(await page.evaluate(() => document.documentElement.outerHTML)).includes("/uploads/"));
      proxy.release();
      await awaitUpload(page, sent.name, "completed");
      const hosts = await page.evaluate(() => [...new Set(performance.getEntriesByType("resource").map(({ name }) => new URL(name).host))]);
      assert.deepEqual(hosts.filter((host) => host && host !== new URL(proxy.url).host), []);
    });
  });
}
