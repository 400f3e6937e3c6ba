import Testing

@testable import TransferServer

@Suite("The handlers of a server")
struct RoutesTests {
    @Test(
        "The response to an unknown path names the paths of files and uploads only if they are those of the command",
        arguments: [("files", "", true), (".onward/files", "/.onward", false), ("media", "", false)])
    func hint(prefix: String, ownPrefix: String, isExpected: Bool) {
        let routes = Routes([(prefix, FunctionHandler { _ in .text("") })], ownPrefix: ownPrefix)
        #expect(routes.hasFiles == isExpected)
    }
}
