import Glibc
import Testing

/// The web interface in real browsers: `make test-browser`.
@Suite(
    "The page in browsers", .serialized, .blocking(limit: .seconds(1200)),
    .enabled(if: getenv("ONWARD_BROWSER") != nil, "make test-browser runs it"))
struct PageBrowserTests {
    private func run(_ name: String, in browser: String) throws {
        try NodeTests.run(name, variables: [("ONWARD_BROWSERS", browser)], timeout: .seconds(1100))
    }

    @Test("shows folders, uploads files, asks for tokens, and needs no mouse", arguments: ["chromium", "firefox"])
    func page(browser: String) throws { try run("page.test.mjs", in: browser) }

    @Test("resumes a file of five gigabytes beyond 4 GiB", arguments: ["chromium", "firefox"])
    func large(browser: String) throws { try run("page-large.test.mjs", in: browser) }

    @Test("resumes uploads after interruptions of every kind", arguments: ["chromium", "firefox"])
    func recovery(browser: String) throws { try run("page-recovery.test.mjs", in: browser) }

    @Test(
        "gets a cookie, plays a video, shows the usage, and works with TLS and --own-prefix",
        arguments: ["chromium", "firefox"])
    func sessions(browser: String) throws { try run("page-sessions.test.mjs", in: browser) }

    @Test("is accessible in every state, as far as axe can examine it", arguments: ["chromium", "firefox"])
    func access(browser: String) throws { try run("page-access.test.mjs", in: browser) }
}

/// Tests of the page that need no browser.
@Suite("The files of the page", .blocking)
struct PageFilesTests {
    @Test("have all texts in all languages, no markup from data, and a small size")
    func files() throws { try NodeTests.run("page-files.test.mjs", timeout: .seconds(60)) }
}
