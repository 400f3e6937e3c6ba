import ConformanceKit
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// The JavaScript client in Node. `BrowserTests` runs it in browsers.
@Suite("The module in Node", .blocking)
struct ModuleTests {
    @Test("its decisions are correct for generated requests, responses and interruptions")
    func decisions() throws { try NodeTests.run("decisions.test.mjs", timeout: .seconds(240)) }

    @Test("its uploads to the server survive interruptions, pauses and restarts")
    func uploads() throws { try NodeTests.run("uploads.test.mjs", timeout: .seconds(240)) }

    @Test("it passes the client mode of the conformance harness")
    func conformance() throws {
        try NodeTests.run("conformance.test.mjs", variables: [("ONWARD_BROWSERS", "node")], timeout: .seconds(600))
    }

    @Test("the server serves the module of its version, even below --own-prefix")
    func served() throws {
        let printed = ProgramRun(try ExecutableLocation.onward(), arguments: ["version"], timeout: .seconds(60)).run()
        let version = String(decoding: printed.output, as: UTF8.self).dropFirst("onward ".count).prefix { $0 != "\n" }
        let path = "/onward/\(version)/onward.js"
        let types = try #require(
            FileManager.default.contents(atPath: NodeTests.root + "/Sources/BrowserAssets/onward.d.ts"))
        let module = try #require(
            FileManager.default.contents(atPath: NodeTests.root + "/Sources/BrowserAssets/onward.js"))
        #expect(String(decoding: module, as: UTF8.self).contains("export const version = \"\(version)\";"))
        for prefix in ["", "/.onward"] {
            try withServer(options: prefix.isEmpty ? [] : ["--own-prefix", prefix]) { server in
                let response = try server.exchange(.get(prefix + path))
                #expect(response.status == 200 && Data(response.content) == module)
                #expect(response.fields["Access-Control-Allow-Origin"] == "*")
                #expect(response.fields["Cache-Control"]?.contains("immutable") == true)
                let declarations = try server.exchange(.get(prefix + "/onward/\(version)/onward.d.ts"))
                #expect(declarations.status == 200 && Data(declarations.content) == types)
                if !prefix.isEmpty { #expect(try server.exchange(.get(path)).status == 404) }
            }
        }
    }
}
