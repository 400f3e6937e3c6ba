import Testing
import UploadStorage

@testable import TransferServer

@Suite("Request targets in the log")
struct LoggedTargetTests {
    @Test("SEC-15: the log shows a hash instead of an upload's URL")
    func uploads() {
        let id = UploadID()
        let logged = LoggedTarget("/uploads/\(id.text)?x=1").text
        #expect(logged == "/uploads/\(id.description)")
        #expect(!logged.contains(id.text.prefix(8)))
    }

    @Test(
        "SEC-15: the log hides the secret in every spelling of the URL",
        arguments: ["/uploads/%30%31secret", "/uploads/a/secret", "http://h/uploads/secret", "/%75ploads/secret"])
    func spellings(target: String) {
        #expect(!LoggedTarget(target).text.contains("secret"))
    }

    @Test(
        "SEC-15: the log hides an upload id in other paths, too",
        arguments: ["/uploads%2F", "/UPLOADS/", "/x/", "/files/../uploads/"])
    func elsewhere(prefix: String) {
        let id = UploadID()
        #expect(!LoggedTarget(prefix + id.text).text.contains(id.text))
    }

    @Test("the log shows the name of a file, even if it looks like an id")
    func names() {
        let name = "/files/d41d8cd98f00b204e9800998ecf8427e"
        #expect(LoggedTarget(name).text == name)
    }

    @Test("control characters cannot forge a line, and the length is bounded")
    func forging() {
        #expect(!LoggedTarget("/files/a\nb c").text.contains { $0 == "\n" || $0 == " " })
        #expect(LoggedTarget("/" + String(repeating: "x", count: 5000)).text.count == 300)
    }

    @Test("queries are omitted, because they may contain secrets")
    func queries() {
        #expect(LoggedTarget("/files/a?token=t").text == "/files/a")
    }
}
