import Glibc
import Testing

/// Pages in real browsers upload and download files: `make test-browser`.
@Suite(
    "Browser", .serialized, .blocking(limit: .seconds(1200)),
    .enabled(if: getenv("ONWARD_BROWSER") != nil, "make test-browser runs it"))
struct BrowserTests {
    @Test(
        "XCO-01 XCO-02: pages of another origin upload files despite interruptions of every kind, and read them",
        arguments: ["chromium", "firefox"])
    func uploads(browser: String) throws {
        try NodeTests.run(
            "browsers.test.mjs", variables: [("ONWARD_BROWSERS", browser)], timeout: .seconds(1100))
    }

    @Test("a killed test leaves no process behind", arguments: ["chromium", "firefox"])
    func killed(browser: String) throws {
        try NodeTests.run("kit.test.mjs", variables: [("ONWARD_BROWSERS", browser)], timeout: .seconds(300))
    }

    @Test("the module passes the client mode of the conformance harness", arguments: ["chromium", "firefox"])
    func conformance(browser: String) throws {
        try NodeTests.run(
            "conformance.test.mjs", variables: [("ONWARD_BROWSERS", browser)], timeout: .seconds(1100))
    }
}
