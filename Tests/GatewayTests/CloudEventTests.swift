import Foundation
import HTTPSemantics
import Testing
import UploadStorage

@testable import Gateway

@Suite("Events as CloudEvents with the headers of Standard Webhooks")
struct CloudEventTests {
    private static let event = UploadEvent(
        id: "0f", kind: .completed, time: 1_795_644_163_444, upload: "ab", principal: "anna", method: "PUT",
        target: "/files/a \"b\"\u{1}.bin", length: 3, status: 201, file: "a.bin",
        fields: ["Content-Type": "text/plain", "Content-Language": "de", "content-language": "en"])

    @Test("the body has the attributes of CloudEvents 1.0 and the data of the event")
    func body() throws {
        let body = CloudEvent(event: Self.event, source: "https://files.example").body
        let json = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        let attributes = json.filter { $0.key != "data" } as? [String: String]
        #expect(
            attributes == [
                "specversion": "1.0", "id": "0f", "source": "https://files.example", "subject": "ab",
                "type": "onward.upload.completed", "time": "2026-11-25T22:02:43.444Z",
                "datacontenttype": "application/json",
            ])
        let data = try #require(json["data"] as? [String: Any])
        #expect(
            Set(data.keys) == ["upload", "principal", "method", "target", "length", "status", "file", "fields"])
        #expect(data["target"] as? String == "/files/a \"b\"\u{1}.bin" && data["length"] as? Int == 3)
        #expect(data["status"] as? Int == 201 && data["principal"] as? String == "anna")
        #expect(data["fields"] as? [String: String] == ["content-type": "text/plain", "content-language": "de, en"])
    }

    @Test("every delivery of an event has the same body", arguments: UploadEvent.Kind.allCases)
    func stability(kind: UploadEvent.Kind) {
        var event = Self.event
        event.kind = kind
        let bodies = (0..<20).map { _ in CloudEvent(event: event, source: "onward").body }
        #expect(Set(bodies).count == 1)
    }

    @Test("the signature equals that of the example of Standard Webhooks")
    func signature() throws {
        let secret = try EventSecret(parsing: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        let signed = #"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#
        #expect(secret.signature(of: Array(signed.utf8)) == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test("the fields have the id, the time of the attempt, and one signature for each secret")
    func fields() throws {
        let event = CloudEvent(event: Self.event, source: "onward")
        let secrets = [
            try EventSecret(parsing: "whsec_" + Data(repeating: 1, count: 24).base64EncodedString()),
            try EventSecret(parsing: "whsec_" + Data(repeating: 2, count: 64).base64EncodedString()),
        ]
        let fields = event.fields(body: event.body, secrets: secrets, at: 1_795_644_200)
        #expect(fields["Content-Type"] == "application/cloudevents+json; charset=utf-8")
        #expect(fields["webhook-id"] == "0f" && fields["webhook-timestamp"] == "1795644200")
        let signed = Array("0f.1795644200.".utf8) + event.body
        #expect(
            fields["webhook-signature"]
                == secrets.map { "v1," + $0.signature(of: signed) }.joined(separator: " "))
        #expect(!event.fields(body: event.body, secrets: [], at: 1).contains("webhook-signature"))
    }

    @Test(
        "secrets that are too short, too long or malformed are rejected, and no message contains them",
        arguments: [
            "", "whsec_", "whsec_c2hvcnQtc2VjcmV0", "c2hvcnQtc2VjcmV0LXNob3J0LXNlY3JldC1zaG9ydA==",
            "whsec_not Base64 at all not Base64 at all", "whsec_" + String(repeating: "QUJD", count: 22),
        ])
    func malformedSecret(text: String) {
        do throws(SettingError) {
            _ = try EventSecret(parsing: text)
            Issue.record("\(text) is accepted")
        } catch {
            #expect(text.isEmpty || text == "whsec_" || !error.description.contains(text))
        }
    }

    @Test("a file of secrets has one or two of them; # begins a comment")
    func secretsFile() throws {
        let line = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
        let other = "whsec_" + Data(repeating: 8, count: 32).base64EncodedString()
        #expect(try EventSettings.secrets(parsing: "# new\n\(line)\r\n\n  \(other) # old\n").count == 2)
        for text in ["", "# none\n", "\(line)\n\(line)\n\(other)", "\(line)\nx"] {
            #expect(throws: SettingError.self) { try EventSettings.secrets(parsing: text) }
        }
        do throws(SettingError) { _ = try EventSettings.secrets(parsing: "\(line)\nx") } catch {
            #expect(error.description.hasPrefix("line 2: "))
        }
    }

    // MARK: Settings

    private func settings(_ text: String) throws(SettingError) -> EventSettings {
        try EventSettings(parsing: text) { text in
            text.hasSuffix("s") ? Int64(text.dropLast()).map { .seconds($0) } : nil
        }
    }

    @Test("a destination is parsed together with its settings")
    func parsing() throws {
        let settings = try settings(
            "http://127.0.0.1:3000/events?key=x,timeout=5s,retry=60s,keep=600s,max=10,source=urn:x")
        guard case .destination(.url(let url)) = settings.destination else {
            Issue.record("no URL")
            return
        }
        #expect(url.description == "http://127.0.0.1:3000/events")
        #expect(settings.timeout == .seconds(5) && settings.retryTime == .seconds(60))
        #expect(settings.keepTime == .seconds(600) && settings.maxCount == 10 && settings.source == "urn:x")
        let program = try self.settings("/usr/local/bin/notify retry=1s")
        guard case .destination(.program("/usr/local/bin/notify")) = program.destination else {
            Issue.record("no program")
            return
        }
        let socket = try self.settings("unix:/run/app.sock:/events")
        guard case .destination(.url(let url)) = socket.destination else {
            Issue.record("no URL")
            return
        }
        #expect(url.description == "unix:/run/app.sock:/events")
    }

    @Test(
        "all mistakes are reported at once",
        arguments: [
            ("", ["give a URL"]),
            ("program", ["'program' is not a destination", "the absolute path of a program"]),
            ("ftp://x/", ["not a destination"]), ("unix:x", ["not a destination", "unix:/SOCKET:/PATH"]),
            ("http://x/ keep=60s", ["keep=60s", "retry=86400s", "give a longer keep= or a shorter retry="]),
            ("http://x/ retry=604801s", ["keep=604800s", "retry=604801s"]),
            (
                "http://x/ timeout=0s retry=x max=-1 source=a\"b color=red max=5",
                ["timeout=1h", "retry=1h", "max=100000", "source=https", "'color=red'", "max is given twice"]
            ),
        ] as [(String, [String])])
    func mistakes(text: String, expected: [String]) {
        do throws(SettingError) {
            _ = try settings(text)
            Issue.record("\(text) is accepted")
        } catch {
            for part in expected { #expect(error.description.contains(part), "\(error)") }
        }
    }
}
