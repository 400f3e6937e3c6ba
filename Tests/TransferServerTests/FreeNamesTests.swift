import Testing

@testable import TransferServer

@Suite("Names that the server chooses")
struct FreeNamesTests {
    @Test("SEC-04: the proposed name is sanitized, further names get a number before the suffix")
    func proposed() {
        let names = FreeNames(directory: ["in"], disposition: #"inline; filename="../../etc/report.tar.gz""#)
        #expect(names.name(0)?.path == "in/report.tar.gz")
        #expect(names.name(1)?.path == "in/report.tar (1).gz")
        #expect(names.name(20)?.path == "in/report.tar (20).gz")
        #expect(names.name(21) != names.name(21))
    }

    @Test(
        "the name is random if no name was proposed or if no part of the proposed name is usable",
        arguments: [nil, "inline", #"inline; filename="..""#])
    func random(disposition: String?) {
        let first = FreeNames(directory: [], disposition: disposition).name(0)
        #expect(first != nil && first != FreeNames(directory: [], disposition: disposition).name(0))
    }

    @Test("numbered names do not exceed the maximum length of a file name")
    func long() throws {
        let names = FreeNames(
            directory: [], disposition: "inline; filename*=UTF-8''" + String(repeating: "%C3%A4", count: 300) + ".bin")
        for attempt in [0, 1, 25] {
            let name = try #require(names.name(attempt))
            #expect(name.lastSegment.utf8.count <= 255 && name.lastSegment.hasSuffix(".bin"))
        }
    }

    @Test("a name that is nearly all extension gets a number, too", arguments: [30, 31, 32, 240, 252, 253])
    func longExtension(length: Int) throws {
        let text = "a." + String(repeating: "x", count: length)
        for names in [
            FreeNames(directory: ["d"], disposition: "inline; filename=\"\(text)\""),
            FreeNames(directory: ["d"], name: text),
        ] {
            #expect(names.name(0)?.lastSegment == text)
            for attempt in [1, 20, 25] {
                let name = try #require(names.name(attempt)).lastSegment
                #expect(name != text && name.utf8.count <= 255 && name.hasPrefix("a") && name.contains(" ("))
            }
        }
    }
}
