// The accessibility of every state of the page for people, examined by axe in both color schemes and two widths.
// ONWARD_SCREENSHOTS=DIR also writes a picture of each.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browsers, launch } from "./kit/browser.mjs";
import { awaitDialog, awaitEntry, awaitPage, awaitUpload, pressUpload, uploadPart } from "./kit/people.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const axe = fileURLToPath(new URL("../../.build/axe/axe_core_python/axe.min.js", import.meta.url));
const pictures = process.env.ONWARD_SCREENSHOTS;
const tokens = { alice: "alice-token-0123456789", dora: "dora-token-0123456789" };
const directory = temporaryDirectory("onward-access-");

before(() => {
  assert.ok(existsSync(axe), "scripts/install-axe installs axe");
  if (pictures) mkdirSync(pictures, { recursive: true });
});

/** A picture of hills, without a file in the repository. */
const hills = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 40" width="640" height="400"><defs><linearGradient id="s" x2="0" y2="1">
<stop stop-color="#f8c68a"/><stop offset="1" stop-color="#b9a8d6"/></linearGradient></defs><path fill="url(#s)" d="M0 0h64v40H0z"/>
<path fill="#4a7a70" d="M0 25c10-8 22 4 34-2s20-8 30 0v17H0z"/><path fill="#26463c" d="M0 34c14-10 22-4 34 0s18 0 30-4v10H0z"/></svg>`;

// Chromium changes its colors while it runs; Firefox is started with each of them.
const settings = browsers.flatMap((name) => (name === "chromium" ? [[name, ["light", "dark"]]] : [[name, ["light"]], [name, ["dark"]]]));

for (const [name, schemes] of settings) {
  describe(`${name}, ${schemes.join(" and ")}`, { timeout: 900_000 }, () => {
    let browser, server, proxy, page;
    endWithTests();
    before(async () => {
      const path = join(directory, `tokens-${name}-${schemes[0]}`);
      writeFileSync(path, `alice ${tokens.alice} read,write,admin\ndora ${tokens.dora} create\n`, { mode: 0o600 });
      server = await Server.start(["--token-file", path, "--quota", "10G", "--max-append-size", "256K"]);
      proxy = await FaultProxy.start(server.port);
      const files = join(server.directory, "data/files");
      for (const folder of ["Photos/Summer 2026", "Reports", "Empty"]) mkdirSync(join(files, folder), { recursive: true });
      for (const [path, size] of [
        ["annual report 2026.pdf", 3_400_000], ["backup.tar.gz", 48_000_000], ["budget.ods", 74_213], ["dataset.parquet", 9_876_543],
        ["notes.txt", 812], ["disk image.iso", 734_003_200], ["talk.webm", 31_000_000], ["interview.mp3", 5_100_000],
        ["evil\u202Egnp.exe", 1], [`a name that is so long that it needs two lines ${"even in a wide window ".repeat(6)}.txt`, 12],
      ]) {
        writeFileSync(join(files, "Reports", path), "");
        truncateSync(join(files, "Reports", path), size);
      }
      for (const one of ["hills.svg", "lake.svg"]) writeFileSync(join(files, "Photos", one), hills);
      browser = await launch(name, name === "firefox" ? { colors: schemes[0] } : { args: ["--accept-lang=en-US", "--force-renderer-accessibility"] });
    });
    beforeEach(() => proxy.release());

    async function open(path, token = tokens.alice) {
      await page?.close();
      page = await browser.open(proxy.url + "/files/Empty/");
      await awaitPage(page);
      await page.evaluate((token) => {
        sessionStorage.clear();
        if (token) sessionStorage.setItem("onward-token:/", token);
        return fetch("/onward/session", { method: "DELETE" });
      }, token);
      await page.navigate(proxy.url + path);
      await awaitPage(page);
    }

    /** Examines the page in both color schemes and two widths. */
    async function examine(state) {
      const found = [];
      for (const [width, height] of [[1280, 800], [360, 740]]) {
        await page.resize(width, height);
        for (const colors of schemes) {
          if (name === "chromium") await page.setMedia({ colors });
          assert.ok(await page.evaluate((colors) => matchMedia(`(prefers-color-scheme: ${colors})`).matches, colors));
          // Transitions of colors and progress have ended.
          await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished)));
          if (pictures) await page.screenshot(join(pictures, `${name}-${state}-${width}-${colors}.png`));
          if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(`() => { ${readFileSync(axe, "utf8")} }`);
          const problems = await page.evaluate(async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
            .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" ")}`));
          found.push(...problems.map((problem) => `${state} ${width} ${colors}: ${problem}`));
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (overflow > 0) found.push(`${state} ${width}: wider than the window by ${overflow} pixels`);
        }
      }
      await page.resize(1280, 800);
      assert.deepEqual(found, []);
    }

    /** Chooses files that need no disk. */
    const add = (...files) => page.evaluate((files) => {
      const transfer = new DataTransfer();
      for (const [name, size] of files) transfer.items.add(new File([new Uint8Array(size)], name, { lastModified: 1.79e12 }));
      const input = document.getElementById("files-input");
      input.files = transfer.files;
      input.dispatchEvent(new Event("change"));
    }, files);

    test("without a token", async () => {
      await open("/files/Reports/", null);
      await examine("unauthorized");
      await page.click("#notice button");
      await awaitDialog(page);
      await page.type("wrong");
      await page.press("Enter");
      await page.waitFor(() => document.querySelector("#token-problem").textContent);
      await examine("token");
    });

    test("folders", async () => {
      await open("/");
      await examine("root");
      await open("/files/Reports/");
      await examine("folder");
      await page.click("#search");
      await page.type("report");
      await page.waitFor(() => document.querySelectorAll("tbody tr:not([hidden])").length === 1);
      await examine("search");
      await page.type("xyz");
      await page.waitFor(() => document.querySelector("#notice:not([hidden])"));
      await examine("nothing-found");
      await open("/files/Empty/");
      await examine("empty");
      await open("/files/Missing/");
      await examine("missing");
    });

    test("screen readers get a table, also of the rows outside the window", { skip: name !== "chromium" }, async () => {
      for (let index = 0; index < 200; index += 1) writeFileSync(join(server.directory, `data/files/Empty/${index}.txt`), "");
      await open("/files/Empty/");
      await page.cdp("Accessibility.enable");
      const counts = {};
      await page.waitFor(() => document.querySelectorAll("tbody tr").length === 200);
      const { nodes } = (await page.cdp("Accessibility.getFullAXTree")).result;
      for (const { role, ignored } of nodes) if (!ignored) counts[role.value] = (counts[role.value] ?? 0) + 1;
      assert.deepEqual([counts.table, counts.row, counts.cell, counts.columnheader], [1, 201, 800, 4]);
    });

    test("screen readers find everything by role and name, in every state", async () => {
      const expectAll = async (...expected) => {
        let wrong;
        await until(async () => {
          wrong = [];
          for (const [role, name, count = 1] of expected) {
            const found = await page.count(role, name);
            if (found !== count) wrong.push(`${role} ${name}: ${found}, expected ${count}`);
          }
          return wrong.length === 0;
        }).catch(() => {});
        assert.deepEqual(wrong, []);
      };
      await open("/files/Photos/");
      await expectAll(
        ["banner"], ["main"], ["log"], ["contentinfo"], ["navigation", "Path"], ["heading", "Photos"], ["region", "Photos"],
        ["link", "Skip to the files"], ["link", "Files"], ["button", "Upload files"], ["button", "Upload folder"],
        ["button", "Usage"], ["button", "Forget token"], ["searchbox", "Search in this folder"],
        ["table", "Content of Photos"], ["columnheader", "Name"], ["button", "Name"], ["columnheader", "Actions"],
        ["link", "Summer 2026"], ["link", "hills.svg"], ["link", "Download \u2068hills.svg\u2069"],
        ["button", "Delete \u2068hills.svg\u2069"], ["status"], ["meter", "Used storage"], ["alert", undefined, 0], ["dialog", undefined, 0]);
      await page.evaluate(() => document.querySelector("tr.image a").click());
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth > 0);
      await expectAll(["dialog", "hills.svg"], ["image", "hills.svg"], ["button", "Previous"], ["button", "Next"], ["button", "Close"]);
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      proxy.hold(900_000);
      await add(["hills.svg", 10], ["other.bin", 9_000_000]);
      await awaitDialog(page);
      // Firefox omits the characters that isolate the direction from names that are the text of an element.
      await expectAll(["dialog", name === "firefox" ? "hills.svg exists already" : "\u2068hills.svg\u2069 exists already"], ["button", "Keep both"], ["button", "Replace"], ["button", "Skip"],
        ["button", "Cancel"]);
      await page.click("dialog button[value=skip]");
      await awaitUpload(page, "other.bin", "uploading", { beyond: 0.05 });
      await expectAll(["region", "Uploads"], ["listitem", undefined, 2], ["progressbar", "Progress of \u2068other.bin\u2069"],
        ["button", "Pause: \u2068other.bin\u2069"], ["button", "Discard: \u2068other.bin\u2069"], ["button", "Pause all"]);
      await pressUpload(page, "other.bin", "Pause");
      await awaitUpload(page, "other.bin", "paused");
      await expectAll(["button", "Resume: \u2068other.bin\u2069"], ["button", "Resume all"]);
      await pressUpload(page, "other.bin", "Discard");
      await page.waitFor(() => document.querySelectorAll("#upload-rows li").length === 0);
      await page.evaluate(() => {
        Object.defineProperty(navigator, "onLine", { get: () => false });
        window.fetch = async () => { throw new TypeError("no network"); };
        dispatchEvent(new Event("offline"));
      });
      await page.waitFor(() => !document.getElementById("banner").hidden);
      await expectAll(["alert"]);
      await open("/files/Photos/", null);
      await expectAll(["heading", "This server needs a token"], ["button", "Enter token", 2]);
      await page.click("#notice button");
      await awaitDialog(page);
      await expectAll(["dialog", "Enter your token"], ["checkbox", "Show the token"], ["checkbox", "Keep on this device"],
        ["button", "Continue"], ["button", "Cancel"]);
    });

    test("a token that may only upload", async () => {
      await open("/files/Reports/", tokens.dora);
      await examine("upload-only");
    });

    test("a picture, and a file that is not a picture", async () => {
      await open("/files/Photos/");
      await page.evaluate(() => document.querySelector("tr.image a").click());
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth > 0);
      await examine("picture");
      await page.press("Escape");
      await open("/files/Reports/");
      await page.evaluate(() => document.querySelector("tr.video a").click());
      await page.waitFor(() => document.querySelector("dialog [role=status]"));
      await examine("not-shown");
    });

    test("questions and usage", async () => {
      await open("/files/Reports/");
      await page.evaluate(() => document.querySelector("[data-delete]").click());
      await awaitDialog(page);
      await examine("delete");
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      await add(["notes.txt", 500], ["budget.ods", 90_000]);
      await awaitDialog(page);
      await examine("exists");
      await page.press("Escape");
      await page.waitFor(() => !document.querySelector("dialog"));
      await page.click("#show-usage");
      await awaitDialog(page);
      await examine("usage");
    });

    test("uploads in all states", async () => {
      await open("/files/Reports/");
      await add(["small.txt", 300], ["holiday film.mp4", 9_000_000], ["scan 0001.tiff", 9_000_000], ["archive.zip", 9_000_000]);
      await awaitUpload(page, "small.txt", "completed");
      for (const [one, part] of [["scan 0001.tiff", 0.1], ["archive.zip", 0.2], ["holiday film.mp4", 0.3]]) {
        await until(async () => {
          proxy.hold(100_000);
          return (await uploadPart(page, one)) >= part;
        });
        await pressUpload(page, one, "Pause");
        await awaitUpload(page, one, "paused");
      }
      await pressUpload(page, "holiday film.mp4", "Resume");
      // The time that is left is known after half a second with progress.
      await until(() => {
        proxy.hold(50_000);
        return page.evaluate(() => / left$/.test(document.querySelector("#upload-rows .uploading .status").textContent));
      });
      proxy.hold(0);
      await examine("uploads");
      await page.evaluate(() => document.querySelector("#pause-all").click());
      await server.crash();
      await page.evaluate(() => document.querySelector("#resume-all").click());
      await page.waitFor(() => /next attempt/.test(document.querySelector("#upload-rows").textContent));
      await examine("server-lost");
      await page.evaluate(() => document.querySelector("#pause-all").click());
      await server.restart();
      await page.reload();
      await awaitPage(page);
      await page.waitFor(() => document.querySelectorAll("#upload-rows .interrupted").length > 0);
      await examine("interrupted");
      await page.evaluate(() => document.querySelector("#upload-rows button").click());
      await page.evaluate(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["x"], "other.mp4", { lastModified: 1.79e12 }));
        const input = document.getElementById("again-input");
        input.files = transfer.files;
        input.dispatchEvent(new Event("change"));
      });
      await page.waitFor(() => document.querySelector("#upload-rows .failed"));
      await examine("another-file");
    });

    test("German, and a connection that is lost", async () => {
      const german = await launch(name, name === "firefox"
        ? { colors: schemes[0], preferences: { "intl.accept_languages": "de-DE, de" } } : { args: ["--accept-lang=de-DE"] });
      try {
        page = await german.open(proxy.url + "/");
        await awaitPage(page);
        await page.click("#notice button");
        await awaitDialog(page);
        assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
        await page.type(tokens.alice);
        await page.press("Enter");
        await awaitEntry(page, "Reports");
        await page.setOffline(true);
        await page.evaluate(() => dispatchEvent(new Event("offline")));
        await page.waitFor(() => document.getElementById("banner").textContent.startsWith("Keine Verbindung"));
        await examine("german");
      } finally {
        await german.close();
        page = null;
      }
    });
  });
}
