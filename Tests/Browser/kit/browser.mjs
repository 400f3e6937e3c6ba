// Controls headless Chromium and Firefox with WebDriver BiDi: Chromium by chromedriver, Firefox by its own implementation.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unregister, register, start, until } from "./server.mjs";
import { connectWebSocket } from "./websocket.mjs";

const subjects = (process.env.ONWARD_BROWSERS ?? "node chromium firefox").split(/[ ,]+/);
/** The browsers to test: all, or those that the environment variable ONWARD_BROWSERS names. */
export const browsers = ["chromium", "firefox"].filter((name) => subjects.includes(name));
/** Whether to test in Node: ONWARD_BROWSERS is absent or names `node`. */
export const includesNode = subjects.includes("node");

/** Milliseconds in which the browser has to respond to a command. */
const COMMAND_TIMEOUT = 180_000;
const PROGRAMS = { chromium: "/usr/bin/chromium", chromedriver: "/usr/bin/chromedriver", firefox: "/usr/bin/firefox-esr" };

/**
 * Starts a browser.
 * @param {"chromium" | "firefox"} name
 * @param {{ profile?: string, colors?: "light" | "dark", reducedMotion?: boolean, args?: string[],
 *   preferences?: Record<string, any> }} [settings]
 *   `profile`: a directory that is kept, so that a later start has the same storage. `colors` and `reducedMotion` are what
 *   pages see in media queries. `preferences` are those of Firefox.
 */
export async function launch(name, settings = {}) {
  const browser = new Browser();
  browser.name = name;
  browser.isTemporary = !settings.profile;
  browser.profile = settings.profile ?? mkdtempSync(join(tmpdir(), "onward-browser-"));
  mkdirSync(browser.profile, { recursive: true });
  register(browser, () => browser.kill());
  try {
    const url = await (name === "chromium" ? startChromium(browser, settings) : startFirefox(browser, settings));
    browser.socket = await connectWebSocket(url, (text) => browser.receive(JSON.parse(text)), () => browser.disconnected());
    if (name === "firefox") {
      await browser.send("session.new", {
        capabilities: { alwaysMatch: { acceptInsecureCerts: true, unhandledPromptBehavior: { default: "accept" } } },
      });
    }
    await browser.send("session.subscribe", { events: ["log.entryAdded", "browsingContext.userPromptOpened"] });
    return browser;
  } catch (error) {
    error.message += `\n${browser.process?.log.slice(-3000)}`;
    await browser.kill();
    throw error;
  }
}

function expectProgram(path) {
  if (!existsSync(path)) throw new Error(`${path} is missing; scripts/system-packages browser installs it`);
}

async function startChromium(browser, { colors, reducedMotion, args = [] }) {
  expectProgram(PROGRAMS.chromium);
  expectProgram(PROGRAMS.chromedriver);
  browser.process = start(PROGRAMS.chromedriver, ["--port=0"], {
    stdio: ["ignore", "pipe", "pipe"], detached: true, env: { ...process.env, HOME: browser.profile },
  });
  let output = "";
  browser.process.stdout.on("data", (text) => (output += text));
  const port = await until(() => /started successfully on port (\d+)/.exec(output)?.[1]);
  const response = await fetch(`http://127.0.0.1:${port}/session`, {
    method: "POST",
    body: JSON.stringify({
      capabilities: {
        alwaysMatch: {
          browserName: "chrome", webSocketUrl: true, acceptInsecureCerts: true, unhandledPromptBehavior: "accept",
          "goog:chromeOptions": {
            binary: PROGRAMS.chromium,
            args: [
              // With a pipe in place of a port, Chromium ends when chromedriver has ended.
              "--remote-debugging-pipe",
              "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
              "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
              "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
              `--user-data-dir=${browser.profile}`,
              ...(colors === "dark" ? ["--blink-settings=preferredColorScheme=0"] : []),
              ...(reducedMotion ? ["--force-prefers-reduced-motion"] : []), ...args,
            ],
          },
        },
      },
    }),
  });
  const { value } = await response.json();
  if (!value.capabilities) throw new Error(value.message);
  return value.capabilities.webSocketUrl;
}

async function startFirefox(browser, { colors, reducedMotion, args = [], preferences: own = {} }) {
  expectProgram(PROGRAMS.firefox);
  const preferences = {
    "app.update.auto": false, "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false,
    "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false,
    "browser.sessionstore.resume_from_crash": false, "toolkit.telemetry.reportingpolicy.firstRun": false,
    "browser.aboutwelcome.enabled": false, "extensions.update.enabled": false, "media.gmp-manager.updateEnabled": false,
    // Pages see a change of the network only if something reports it.
    "network.manage-offline-status": false, "dom.disable_open_during_load": false,
    "layout.css.prefers-color-scheme.content-override": colors === "dark" ? 0 : 1,
    "ui.prefersReducedMotion": reducedMotion ? 1 : 0, ...own,
  };
  const lines = Object.entries(preferences).map((entry) => `user_pref(${entry.map((part) => JSON.stringify(part))});`);
  writeFileSync(join(browser.profile, "user.js"), lines.join("\n"));
  browser.process = start(
    PROGRAMS.firefox,
    ["--headless", "--no-remote", "--profile", browser.profile, "--remote-debugging-port", "0", ...args],
    { stdio: ["ignore", "ignore", "pipe"], detached: true, env: { ...process.env, HOME: browser.profile, MOZ_HEADLESS: "1" } });
  const address = await until(() => /WebDriver BiDi listening on (ws:\S+)/.exec(browser.process.log)?.[1], { seconds: 60 });
  return `${address}/session`;
}

/** A running browser. */
class Browser {
  #number = 0;
  #waiting = new Map();
  pages = new Map();

  /** Sends a command of WebDriver BiDi; returns its result. */
  async send(method, parameters = {}) {
    const id = (this.#number += 1);
    let timer;
    const result = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, method });
      timer = setTimeout(() => reject(new Error(`${method}: no response from the browser`)), COMMAND_TIMEOUT);
    });
    this.socket.send(JSON.stringify({ id, method, params: parameters }));
    return await result.finally(() => clearTimeout(timer));
  }

  receive(message) {
    if (message.type === "event") {
      const { source, context } = message.params;
      return this.pages.get(source?.context ?? context)?.receive(message);
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "success") waiting?.resolve(message.result);
    else waiting?.reject(new Error(`${waiting.method}: ${message.error}: ${message.message}`));
  }

  disconnected() {
    for (const { reject, method } of this.#waiting.values()) reject(new Error(`${method}: the browser has ended`));
    this.#waiting.clear();
  }

  /**
   * Opens a page in a new tab, and waits until it is loaded. Pages with different values of `userContext` (of the command
   * `browser.createUserContext`) have different storage.
   */
  async open(url, { userContext } = {}) {
    const { context } = await this.send("browsingContext.create", { type: "tab", userContext });
    const page = new Page(this, context);
    this.pages.set(context, page);
    await page.navigate(url);
    return page;
  }

  /** The cookies of the server of a page, also those that scripts cannot read. */
  async cookies(page) {
    const { cookies } = await this.send("storage.getCookies", { partition: { type: "context", context: page.context } });
    return cookies;
  }

  /** Ends the browser in order. */
  async close() {
    await Promise.race([this.send("browser.close").catch(() => {}), this.process.ended]);
    await Promise.race([this.process.ended, new Promise((resolve) => setTimeout(resolve, 2000))]);
    await this.kill();
  }

  /** Kills the browser with all its processes, as a crash would. */
  async kill() {
    unregister(this);
    try {
      if (this.process?.pid) process.kill(-this.process.pid, "SIGKILL");
    } catch { /* It has ended. */ }
    await this.process?.ended;
    this.socket?.close();
    if (this.isTemporary) rmSync(this.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** The processes that a process has started, directly or through others. */
export function descendants(pid) {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number));
    return children.flatMap((child) => [child, ...descendants(child)]);
  } catch {
    // A process or a thread has ended meanwhile.
    return [];
  }
}

/** The command line of a process; empty if it has ended. */
export function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}

/** The maximum bytes of memory that a process has used; 0 if it has ended. */
export function peakMemory(pid) {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
  } catch {
    return 0;
  }
}

const KEYS = {
  Enter: "\uE007", Tab: "\uE004", Escape: "\uE00C", Backspace: "\uE003", Delete: "\uE017", Space: " ", Shift: "\uE008",
  Control: "\uE009", Alt: "\uE00A", ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015",
  Home: "\uE011", End: "\uE010", PageUp: "\uE00E", PageDown: "\uE00F",
};

/** A tab. */
class Page {
  /** What the page wrote to the console, and its errors. */
  messages = [];
  /** The types of prompts that were opened (and accepted), such as `beforeunload`. */
  prompts = [];

  constructor(browser, context) {
    this.browser = browser;
    this.context = context;
  }

  receive({ method, params }) {
    if (method === "log.entryAdded") this.messages.push(`${params.level}: ${params.text}`);
    if (method === "browsingContext.userPromptOpened") this.prompts.push(params.type);
  }

  #send(method, parameters = {}) { return this.browser.send(method, { context: this.context, ...parameters }); }

  navigate(url) { return this.#send("browsingContext.navigate", { url, wait: "complete" }); }
  reload() { return this.#send("browsingContext.reload", { wait: "complete" }); }
  close() { return this.#send("browsingContext.close"); }
  /** Closes the tab as a person does: the page can open a prompt before. */
  closeWithPrompt() { return this.#send("browsingContext.close", { promptUnload: true }); }

  /**
   * Calls a function in the page, as after a click of a person. Its parameters and its result, also that of a promise, are
   * JSON. It can use nothing of this program.
   */
  async evaluate(action, ...parameters) {
    const call = `(${action})(...${JSON.stringify(parameters)})`;
    const result = await this.browser.send("script.evaluate", {
      expression: `(async () => JSON.stringify(await ${call}) ?? "null")()`, target: { context: this.context },
      awaitPromise: true, userActivation: true,
    });
    if (result.type === "exception") throw new Error(`in the page: ${result.exceptionDetails.text}`);
    return JSON.parse(result.result.value);
  }

  /** Waits until a function in the page returns something, and returns that. */
  async waitFor(action, { seconds = 30, parameters = [] } = {}) {
    try {
      return await until(() => this.evaluate(action, ...parameters), { seconds, what: String(action) });
    } catch (error) {
      error.message += `\nconsole: ${this.messages.slice(-10).join("\n")}`;
      throw error;
    }
  }

  async #element(selector) {
    const locator = { type: "css", value: selector };
    const { nodes } = await this.#send("browsingContext.locateNodes", { locator, maxNodeCount: 1 });
    if (nodes.length === 0) throw new Error(`no element ${selector}`);
    return { sharedId: nodes[0].sharedId };
  }

  /** The number of elements that have the role, and if it is given the name, for screen readers. */
  async count(role, name) {
    const locator = { type: "accessibility", value: name === undefined ? { role } : { role, name } };
    return (await this.#send("browsingContext.locateNodes", { locator })).nodes.length;
  }

  /** Clicks on the middle of an element with the pointer. */
  async click(selector) {
    const element = await this.#element(selector);
    await this.evaluate((name) => document.querySelector(name).scrollIntoView({ block: "center" }), selector);
    const origin = { type: "element", element };
    await this.#send("input.performActions", {
      actions: [{
        type: "pointer", id: "mouse", actions: [
          { type: "pointerMove", x: 0, y: 0, origin }, { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 },
        ],
      }],
    });
  }

  /** Presses keys one after the other: names of KEYS or characters; `Shift+Tab` presses both. */
  async press(...keys) {
    const actions = keys.flatMap((key) => {
      const values = (key === "+" ? ["+"] : key.split("+")).map((name) => KEYS[name] ?? name);
      return [
        ...values.map((value) => ({ type: "keyDown", value })), ...values.reverse().map((value) => ({ type: "keyUp", value })),
      ];
    });
    await this.#send("input.performActions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  /** Types a text into the focused element. */
  type(text) { return this.press(...text); }

  /** Chooses files in an `<input type="file">`. */
  async choose(selector, paths) {
    await this.#send("input.setFiles", { element: await this.#element(selector), files: paths });
  }

  /** Writes a picture (PNG) of the visible part, or of the entire document. */
  async screenshot(path, { isComplete = false } = {}) {
    const origin = isComplete ? "document" : "viewport";
    const { data } = await this.#send("browsingContext.captureScreenshot", { origin });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  resize(width, height) { return this.#send("browsingContext.setViewport", { viewport: { width, height } }); }

  /**
   * Turns the network of the page off or on. Without any network interface except loopback, Chromium reports that it is
   * offline from the start, so the page gets no event.
   */
  setOffline(isOffline) {
    return this.browser.send("emulation.setNetworkConditions", {
      networkConditions: isOffline ? { type: "offline" } : null, contexts: [this.context],
    });
  }

  /** Sends a command of the Chrome DevTools Protocol; only in Chromium. */
  async cdp(method, parameters = {}) {
    this.session ??= (await this.#send("goog:cdp.getSession")).session;
    return await this.browser.send("goog:cdp.sendCommand", { method, params: parameters, session: this.session });
  }

  /** Changes what media queries report; only in Chromium. In Firefox use the settings of `launch`. */
  async setMedia({ colors = "light", reducedMotion = false } = {}) {
    await this.cdp("Emulation.setEmulatedMedia", {
      features: [
        { name: "prefers-color-scheme", value: colors },
        { name: "prefers-reduced-motion", value: reducedMotion ? "reduce" : "no-preference" },
      ],
    });
  }

  /** Crashes the process of the tab: in Firefox the processes of all tabs, because nothing shows which one has the page. */
  async crash() {
    if (this.browser.name === "chromium") {
      this.cdp("Page.crash").catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 200));
      return;
    }
    const processes = descendants(this.browser.process.pid).filter((pid) => / tab$/.test(commandOf(pid)));
    if (processes.length === 0) throw new Error("no process of a tab");
    for (const pid of processes) process.kill(pid, "SIGKILL");
    await until(() => processes.every((pid) => commandOf(pid) === ""));
  }
}
