// Sessions, downloads, media and usage of the page for people, with servers of different settings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { browsers, launch } from "./kit/browser.mjs";
import { awaitDialog, awaitEntry, awaitPage, awaitUpload, hash, pressUpload, shownNames, writeFile } from "./kit/people.mjs";
import { serve } from "./kit/pages.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);
const tokens = { anna: "anna-token-0123456789", ben: "ben-token-0123456789", long: "long-token-" + "0123456789".repeat(110) };
const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>`;

const directory = temporaryDirectory("onward-sessions-");
const file = (name, size) => writeFile(directory, name, size, random);

/** Starts a server with a list of tokens. */
function startSecured(options = []) {
  const path = join(mkdtempSync(join(directory, "tokens-")), "tokens");
  writeFileSync(path, `anna ${tokens.anna} read,write,admin\nben ${tokens.ben} read,write\nlong ${tokens.long} read\n`, { mode: 0o600 });
  return Server.start(["--token-file", path, ...options]);
}

function publish(server, name, content, files = "files") {
  const path = join(server.directory, "data", files, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
}

for (const name of browsers) {
  describe(name, { timeout: 600_000 }, () => {
    let browser, page;
    endWithTests();
    before(async () => (browser = await launch(name)));

    /** Opens a page in a context of its own, so that it has no cookies and tokens of others. */
    async function open(url) {
      const { userContext } = await browser.send("browser.createUserContext");
      page = await browser.open(url, { userContext });
      await awaitPage(page);
    }

    async function enterToken(token) {
      await page.click("#notice button");
      await awaitDialog(page);
      await page.evaluate((token) => (document.getElementById("token").value = token), token);
      await page.press("Enter");
      await page.waitFor(() => !document.querySelector("dialog"));
    }

    const click = (text) => page.evaluate((text) => Array.from(document.querySelectorAll("#entries a")).find((link) =>
      link.textContent === text || link.getAttribute("aria-label")?.includes(text)).click(), text);

    /** Keeps the blobs that the page makes, and the links that it clicks: no person sees where a browser saves a file. */
    const observeDownloads = () => page.evaluate(() => {
      window.blobs = new Map();
      window.saved = [];
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        const url = make.call(URL, blob);
        blobs.set(url, blob);
        return url;
      };
      HTMLAnchorElement.prototype.click = function () {
        if (this.isConnected) return this.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
        saved.push({ href: this.getAttribute("href"), name: this.download });
      };
    });
    const savedContent = () => page.waitFor(async () => {
      const [{ href, name } = {}] = window.saved;
      const content = href && (await (window.blobs.get(href) ?? await (await fetch(href)).blob()).text());
      return href && { isLocal: href.startsWith("blob:"), name, content };
    });

    test("the cookie is only for https if the server uses TLS, and never for scripts", async () => {
      const [certificate, key] = ["certificate.pem", "key.pem"].map((one) => join(directory, one));
      execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], { stdio: "ignore" });
      for (const options of [["--tls-cert", certificate, "--tls-key", key], []]) {
        const server = await startSecured(options);
        publish(server, "a.svg", PICTURE);
        await open(server.url + "/");
        await enterToken(tokens.anna);
        await awaitEntry(page, "a.svg");
        const [cookie, ...others] = await browser.cookies(page);
        assert.deepEqual(others, []);
        assert.deepEqual(
          [cookie.name, cookie.path, cookie.secure, cookie.httpOnly, cookie.sameSite],
          ["onward-session", "/files/", options.length > 0, true, "strict"]);
        assert.equal(await page.evaluate(() => document.cookie), "");
        await click("a.svg");
        await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
        await page.close();
        await server.stop();
      }
    });

    test("everything works below a prefix of the server's own", async () => {
      const server = await startSecured(["--own-prefix", "/.onward/own"]);
      const base = "/.onward/own/";
      publish(server, "sub/a.svg", PICTURE);
      await open(server.url + base);
      await enterToken(tokens.anna);
      await awaitEntry(page, "sub");
      await click("sub");
      await awaitEntry(page, "a.svg");
      assert.equal(await page.evaluate(() => location.pathname), `${base}files/sub/`);
      await click("a.svg");
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
      await page.press("Escape");
      const [cookie] = await browser.cookies(page);
      assert.equal(cookie.path, `${base}files/`);
      const [small, large] = [file("small.bin", 1000), file("large.bin", 3_000_000)];
      await page.choose("#files-input", [small.path, large.path]);
      for (const sent of [small, large]) {
        await awaitUpload(page, sent.name, "completed");
        assert.equal(hash(server.file(`sub/${sent.name}`)), sent.sha256);
      }
      await page.waitFor(() => document.getElementById("usage").textContent.includes("3.0 MB"));
      await page.reload();
      await awaitPage(page);
      assert.deepEqual(await shownNames(page), ["a.svg", "large.bin", "small.bin"]);
      await page.evaluate(() => document.querySelector("#path a").click());
      await awaitEntry(page, "sub");
      assert.equal(await page.evaluate(() => location.pathname), `${base}files/`);
      assert.equal(server.requests(` ${base}onward/session`, " 404"), 0);
      await page.close();
    });

    test("the usage is that of the files and unfinished uploads of each token", async () => {
      const server = await startSecured(["--quota", "10M", "--max-append-size", "500K"]);
      const proxy = await FaultProxy.start(server.port);
      await open(proxy.url + "/");
      await enterToken(tokens.ben);
      await page.choose("#files-input", [file("ben.bin", 1_234_567).path]);
      await awaitUpload(page, "ben.bin", "completed");
      await page.waitFor(() => document.getElementById("usage").textContent === "Token of ben · You use 1.2 MB of 10.0 MB");
      assert.deepEqual(await page.evaluate(() => [document.querySelector("meter").value, document.querySelector("meter").max]),
        [1_234_567, 10_000_000]);
      assert.equal(await page.evaluate(() => document.getElementById("show-usage").hidden), true);
      await page.close();
      await open(proxy.url + "/");
      await enterToken(tokens.anna);
      await page.choose("#files-input", [file("anna.bin", 2_000_000).path]);
      await awaitUpload(page, "anna.bin", "completed");
      // The size that an unfinished upload has announced counts, too.
      proxy.hold(1_200_000);
      await page.choose("#files-input", [file("unfinished.bin", 6_000_000).path]);
      await awaitUpload(page, "unfinished.bin", "uploading", { beyond: 0.1 });
      await pressUpload(page, "unfinished.bin", "Pause");
      await awaitUpload(page, "unfinished.bin", "paused");
      await page.click("#show-usage");
      await awaitDialog(page);
      const rows = await page.evaluate(() => Array.from(document.querySelectorAll("dialog tbody tr"), (row) =>
        Array.from(row.cells, (cell) => cell.textContent)));
      const { principals } = JSON.parse(await page.evaluate(async (token) => (await fetch("/onward/usage?all", {
        headers: { Authorization: `Bearer ${token}` } })).text(), tokens.anna));
      const [anna, ben] = ["anna", "ben"].map((one) => principals.find(({ principal }) => principal === one));
      assert.deepEqual(ben, { principal: "ben", bytes: 1_234_567, uploads: 0 });
      assert.ok(anna.bytes > 2_000_000 && anna.bytes <= 8_000_000 && anna.uploads === 1, JSON.stringify(anna));
      assert.deepEqual(rows, [["anna", `${(anna.bytes / 1e6).toFixed(1)} MB`, "1"], ["ben", "1.2 MB", "0"]]);
      assert.match(await page.evaluate(() => document.querySelector("dialog").textContent), /Each may store 10\.0 MB\..* are free/);
      await page.press("Escape");
      proxy.release();
      await pressUpload(page, "unfinished.bin", "Resume");
      await awaitUpload(page, "unfinished.bin", "completed");
      await page.evaluate(() => Array.from(document.querySelectorAll("[data-delete]")).find((one) =>
        one.getAttribute("aria-label").includes("anna.bin")).click());
      await awaitDialog(page);
      await page.click("dialog button[value=delete]");
      await page.waitFor(() => document.getElementById("usage").textContent === "Token of anna · You use 6.0 MB of 10.0 MB");
      await page.close();
    });

    test("a video is played from its middle with ranges, with the cookie", async () => {
      const path = join(directory, "film.webm");
      // The pictures are noisy, so that the file is too large to be loaded at once.
      if (!existsSync(path)) {
        execFileSync("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i",
          "testsrc=duration=30:size=320x240:rate=10,noise=alls=60:allf=t", "-c:v", "libvpx", "-b:v", "4M", "-qmax", "20",
          "-deadline", "realtime", "-cpu-used", "8", "-g", "20", path]);
      }
      const film = readFileSync(path);
      assert.ok(film.length > 10_000_000, `${film.length} bytes`);
      const server = await startSecured();
      publish(server, "film.webm", film);
      const proxy = await FaultProxy.start(server.port);
      await open(proxy.url + "/");
      await enterToken(tokens.ben);
      await awaitEntry(page, "film.webm");
      // The position is set before the browser can load everything.
      await page.evaluate(() => document.addEventListener("loadedmetadata", ({ target }) => { target.currentTime = 24; }, true));
      await click("film.webm");
      await page.waitFor(() => document.querySelector("dialog video")?.readyState >= 1);
      assert.deepEqual(await page.evaluate(() => {
        const { videoWidth, videoHeight, duration } = document.querySelector("dialog video");
        return [videoWidth, videoHeight, Math.round(duration)];
      }), [320, 240, 30]);
      await page.evaluate(() => {
        const video = document.querySelector("dialog video");
        video.muted = true;
        return video.play();
      });
      await page.waitFor(() => {
        const video = document.querySelector("dialog video");
        return video.currentTime > 25 && video.getVideoPlaybackQuality().totalVideoFrames > 5;
      }, { seconds: 60 });
      // The middle was requested without what precedes it. The last bytes are the index of the film.
      const starts = proxy.heads.filter((head) => head.startsWith("GET /files/film.webm "))
        .map((head) => Number(/^range: *bytes=(\d+)-/im.exec(head)?.[1] ?? 0) / film.length);
      assert.ok(starts.some((start) => start > 0.3 && start < 0.95), `${starts}`);
      await until(() => server.requests("GET /files/film.webm", " 206") >= 2);
      await page.press("Escape");
      await page.close();
    });

    test("without a cookie the page loads files with the token", async () => {
      const server = await startSecured();
      publish(server, "a.svg", PICTURE);
      publish(server, "text ü.txt", "the text");
      await open(server.url + "/");
      // This token is too long for a cookie.
      await enterToken(tokens.long);
      await awaitEntry(page, "a.svg");
      assert.deepEqual(await browser.cookies(page), []);
      await observeDownloads();
      await click("text ü.txt");
      assert.deepEqual(await savedContent(), { isLocal: true, name: "text ü.txt", content: "the text" });
      await click("a.svg");
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
      assert.match(await page.evaluate(() => document.querySelector("dialog img").src), /^blob:/);
      await page.press("Escape");
      await page.evaluate(() => (saved.length = 0));
      await page.evaluate(() => document.querySelector("tr.image td:last-child a").click());
      assert.deepEqual(await savedContent(), { isLocal: true, name: "a.svg", content: PICTURE });
      await page.close();
    });

    test("an application that knows the browser by its own cookie decides about downloads and media", async () => {
      const application = await serve((request, response) => {
        const isKnown = /(^|; )app=anna(;|$)/.test(request.headers.cookie ?? "");
        response.writeHead(isKnown ? 200 : 401, isKnown ? { "Onward-Principal": "anna" } : { "Content-Type": "text/plain" }).end();
      });
      const server = await Server.start(["--auth-url", `${application.url}/auth`]);
      publish(server, "a.svg", PICTURE);
      publish(server, "a.txt", "the text");
      const { userContext } = await browser.send("browser.createUserContext");
      page = await browser.open(`${server.url}/healthz`, { userContext });
      await page.evaluate(() => { document.cookie = "app=anna; path=/"; });
      await page.navigate(`${server.url}/`);
      await awaitPage(page);
      assert.deepEqual(await shownNames(page), ["a.svg", "a.txt"]);
      await observeDownloads();
      // The browser follows the link: the page does not load the file itself.
      assert.equal(await page.evaluate(() => {
        const event = new MouseEvent("click", { bubbles: true, cancelable: true });
        addEventListener("click", (event) => { window.isPrevented = event.defaultPrevented; event.preventDefault(); }, { once: true });
        Array.from(document.querySelectorAll("#entries a")).find(({ textContent }) => textContent === "a.txt").dispatchEvent(event);
        return window.isPrevented;
      }), false);
      await click("a.svg");
      await page.waitFor(() => document.querySelector("dialog img")?.naturalWidth === 7);
      await page.press("Escape");
      const sent = file("sent.bin", 1_000_000);
      await page.choose("#files-input", [sent.path]);
      await awaitUpload(page, sent.name, "completed");
      assert.equal(hash(server.file(sent.name)), sent.sha256);
      assert.deepEqual((await browser.cookies(page)).map(({ name }) => name), ["app"]);
      await page.close();
    });
  });
}
