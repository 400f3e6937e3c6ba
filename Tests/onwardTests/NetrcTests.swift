import Testing

@testable import onward

@Suite("The file .netrc")
struct NetrcTests {
    private func entry(_ host: String, _ text: String) -> String? {
        NetrcFile(parsing: text).entry(of: host).map { "\($0.user):\($0.password)" }
    }

    @Test("A host has the user and the password of its first entry, in one line or several, or of the default entry")
    func entries() {
        let text = """
            # machine commented login x password y
            machine a.example login me password secret account unused
            machine b.example
              login "with space"
              password "quo\\"te\\\\"
            machine A.example login other password other
            default login anonymous password guest
            """
        #expect(entry("a.example", text) == "me:secret" && entry("A.Example", text) == "me:secret")
        #expect(entry("b.example", text) == #"with space:quo"te\"#)
        #expect(entry("commented", text) == "anonymous:guest")
        #expect(entry("c.example", "machine a login b password c") == nil)
    }

    @Test("A macro is skipped up to the next empty line, and a # in a word is no comment")
    func macros() {
        let text = "machine a login b password c#d\nmacdef init\nmachine x login y password z\n\nmachine e password f\n"
        #expect(entry("a", text) == "b:c#d" && entry("x", text) == nil && entry("e", text) == ":f")
    }

    @Test(
        "The file gives the Basic credentials of the host of a URI",
        arguments: ["http://h/x", "https://H:81/", "http://[::1]/"])
    func authorization(uri: String) {
        let file = NetrcFile(parsing: "machine h login me password pw\nmachine ::1 login me password pw")
        #expect(file.authorization(for: uri) == "Basic bWU6cHc=")
        #expect(file.authorization(for: "http://other/") == nil)
    }

    @Test(
        "Damaged text gives no entry",
        arguments: ["", "machine", "machine h", "login x password y", "machine h \"", "macdef"])
    func damaged(text: String) {
        #expect(entry("h", text) == nil)
    }
}
