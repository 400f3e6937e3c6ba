import Testing
import UploadStorage

@testable import TransferServer

@Suite("Request targets in the log")
struct LoggedTargetTests {
    @Test("SEC-15: the log has a hash instead of an upload's URL")
    func uploads() {
        let id = UploadID()
        let logged = LoggedTarget("/uploads/\(id.text)?x=1").text
        #expect(logged == "/uploads/\(id.description)")
        #expect(!logged.contains(id.text.prefix(8)))
    }

    @Test(
        "SEC-15: in no spelling does the secret get through",
        arguments: ["/uploads/%30%31secret", "/uploads/a/secret", "http://h/uploads/secret", "/%75ploads/secret"])
    func spellings(target: String) {
        #expect(!LoggedTarget(target).text.contains("secret"))
    }

    @Test(
        "SEC-15: nor where it is no upload's URL at all",
        arguments: ["/uploads%2F", "/UPLOADS/", "/x/", "/files/../uploads/"])
    func elsewhere(prefix: String) {
        let id = UploadID()
        #expect(!LoggedTarget(prefix + id.text).text.contains(id.text))
    }

    @Test("the log has a file's name, whatever it looks like")
    func names() {
        let name = "/files/d41d8cd98f00b204e9800998ecf8427e"
        #expect(LoggedTarget(name).text == name)
    }

    @Test("control characters cannot forge a line, and the length is bounded")
    func forging() {
        #expect(!LoggedTarget("/files/a\nb c").text.contains { $0 == "\n" || $0 == " " })
        #expect(LoggedTarget("/" + String(repeating: "x", count: 5000)).text.count == 300)
    }

    @Test("queries, which may carry secrets, are left out")
    func queries() {
        #expect(LoggedTarget("/files/a?token=t").text == "/files/a")
    }
}
