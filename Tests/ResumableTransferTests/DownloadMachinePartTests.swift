import HTTPSemantics
import ResumableUpload
import Testing

@testable import ResumableTransfer

@Suite("The state machine of a download: parts")
struct DownloadMachinePartTests {
    private let part: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 40-99/100", "Content-Length": "60"]

    @Test("RNG-28: a part that starts at the requested offset is accepted")
    func part206() {
        var machine = DownloadMachine.sample()
        guard case .resume(_, let end) = machine.reception(206, part) else {
            Issue.record("not accepted")
            return
        }
        #expect(end == 100)
        machine.answer(206, part, position: 100)
        #expect(machine.isFinished)
    }

    @Test(
        "RNG-28: a part other than the requested one is not accepted, and everything is requested again",
        arguments: [
            "bytes 0-99/100", "bytes 39-99/100", "bytes 41-99/100", "bytes 40-99/101", "bytes 40-100/*",
            "bytes 40-99/99", "bytes 40-39/100", "bytes */100", "items 40-99/100", "40-99/100", "bytes=40-99/100",
            "bytes 40-99", "bytes 40-99/100, bytes 40-99/100", "",
        ])
    func otherPart(range: String) {
        var machine = DownloadMachine.sample()
        let fields: Fields = ["ETag": "\"a\"", "Content-Range": range]
        #expect(machine.reception(206, fields) == .inconsistent)
        machine.answer(206, fields)
        #expect(machine.nextRequest()?.fields.isEmpty == true)
        // The received bytes are kept until their replacement is complete.
        #expect(machine.position == 40 && machine.hasBytes)
    }

    @Test(
        "RNG-27: a part of another or of an unknown representation is not accepted",
        arguments: [["ETag": "\"b\""], ["ETag": "W/\"a\""], ["ETag": "a"], [:]] as [Fields])
    func otherTag(fields: Fields) {
        var machine = DownloadMachine.sample()
        #expect(machine.reception(206, fields.merging(["Content-Range": "bytes 40-99/100"])) == .inconsistent)
    }

    @Test("RNG-27: a response with two entity tags counts as a response without a tag")
    func twoTags() {
        var machine = DownloadMachine.sample()
        var fields: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 40-99/100"]
        fields.append("ETag", "\"b\"")
        #expect(machine.reception(206, fields) == .inconsistent)
    }

    @Test("RNG-27: if the validator is a date, the part must have the same date and no different entity tag")
    func partUnderDate() {
        let modified = DownloadMachine.now - 7200
        let same = HTTPDate(secondsSinceEpoch: modified).serialized
        let other = HTTPDate(secondsSinceEpoch: modified + 1).serialized
        let range: Fields = ["Content-Range": "bytes 40-99/100"]
        var machine = DownloadMachine.sample(entityTag: "W/\"a\"", lastModified: modified)
        func isAccepted(_ fields: Fields) -> Bool {
            if case .resume = machine.reception(206, range.merging(fields)) { true } else { false }
        }
        #expect(isAccepted(["Last-Modified": same]))
        #expect(isAccepted(["Last-Modified": same, "ETag": "W/\"a\""]))
        #expect(!isAccepted(["Last-Modified": other]))
        #expect(!isAccepted(["Last-Modified": same, "ETag": "W/\"b\""]))
    }

    @Test("RNG-27: a response to If-Range with a date need not repeat the date, but needs the complete size")
    func omittedDate() {
        let modified = DownloadMachine.now - 7200
        func isAccepted(_ range: String, _ fields: Fields = [:], total: Int64? = 100) -> Bool {
            var machine = DownloadMachine.sample(entityTag: "W/\"a\"", lastModified: modified, total: total)
            let answer = fields.merging(["Content-Range": "bytes \(range)"])
            if case .resume = machine.reception(206, answer) { return true } else { return false }
        }
        #expect(isAccepted("40-99/100"))
        #expect(isAccepted("40-99/100", ["ETag": "W/\"a\""]))
        #expect(isAccepted("40-99/100", total: nil))
        #expect(!isAccepted("40-99/101") && !isAccepted("40-99/*") && !isAccepted("41-99/100"))
        #expect(!isAccepted("40-99/100", ["ETag": "W/\"b\""]))
        #expect(!isAccepted("40-99/100", ["Last-Modified": "rubbish"]))
        #expect(!isAccepted("40-99/100", ["Content-Encoding": "gzip"]))
    }

    @Test("RNG-28: several parts in one response are not accepted")
    func multipart() {
        var machine = DownloadMachine.sample()
        #expect(
            machine.reception(206, ["ETag": "\"a\"", "Content-Type": "multipart/byteranges; boundary=x"])
                == .inconsistent)
    }

    @Test("RNG-28: content that is not as long as the part is not accepted", arguments: ["59", "61", "100"])
    func otherLength(length: String) {
        var machine = DownloadMachine.sample()
        #expect(machine.reception(206, part.merging(["Content-Length": length])) == .inconsistent)
    }

    @Test("content that is longer than its part is rejected, and everything is requested again")
    func overrun() {
        var machine = DownloadMachine.sample()
        machine.answer(206, part, position: 100, ending: .overrun)
        #expect(machine.nextRequest()?.start == 0)
        // The bytes received before that response are kept until their replacement is complete.
        #expect(machine.position == 40)
    }

    @Test("206 to a request without Range is a violation")
    func unrequestedPart() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        machine.answer(206, ["ETag": "\"a\"", "Content-Range": "bytes 0-99/100"])
        guard case .violation = machine.failure else {
            Issue.record("\(String(describing: machine.failure))")
            return
        }
    }

    @Test("RNG-32: after a part that ends before the end of the file, the next part is requested without a wait")
    func shortPart() {
        var machine = DownloadMachine.sample()
        machine.answer(206, ["ETag": "\"a\"", "Content-Range": "bytes 40-49/100"], position: 50)
        #expect(machine.nextRequest()?.fields["Range"] == "bytes=50-")
    }

    @Test("if parts do not contain the total size, the next part is requested until the server has no more")
    func unknownTotal() {
        var machine = DownloadMachine.sample(total: nil)
        machine.answer(206, ["ETag": "\"a\"", "Content-Range": "bytes 40-99/*"], position: 100)
        #expect(machine.nextRequest()?.fields["Range"] == "bytes=100-")
        machine.answer(416, ["ETag": "\"a\"", "Content-Range": "bytes */100"])
        #expect(machine.isFinished)
        #expect(machine.representation?.total == 100)
    }

    @Test("RNG-27: a part whose digest contradicts that of the representation is not accepted")
    func digest() {
        let zero = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
        let other = "sha-256=:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
        var machine = DownloadMachine.sample(digest: zero)
        #expect(machine.reception(206, part.merging(["Repr-Digest": other])) == .inconsistent)
        guard case .resume = machine.reception(206, part.merging(["Repr-Digest": zero])) else {
            Issue.record("the same digest was not accepted")
            return
        }
    }
}
