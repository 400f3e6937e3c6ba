import HTTPSemantics
import ResumableUpload
import Testing

@testable import ResumableTransfer

@Suite("The state machine of a download")
struct DownloadMachineTests {
    private let part: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 40-99/100", "Content-Length": "60"]

    // MARK: Requests

    @Test("RNG-31: a new download is requested without Range and If-Range")
    func firstRequest() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        #expect(
            machine.nextRequest()
                == ClientRequest(
                    kind: .download, resource: .target, method: .get, fields: Fields(), content: .none))
    }

    @Test("RNG-31: a partial file is continued with Range, and with its strong entity tag in If-Range")
    func strongTag() {
        var machine = DownloadMachine.sample()
        #expect(machine.nextRequest()?.fields == ["Range": "bytes=40-", "If-Range": "\"a\""])
    }

    @Test("RNG-31: a download without received bytes requests no range, whatever the validator is")
    func emptyPartial() {
        var machine = DownloadMachine.sample(position: 0)
        #expect(machine.nextRequest()?.fields.isEmpty == true)
    }

    @Test(
        "RNG-27 RNG-31: a date is a validator only if it is a minute older than the response; a weak tag never is",
        arguments: [(3600, true), (60, true), (59, false), (0, false), (-10, false)])
    func date(age: Int64, isValidator: Bool) {
        for tag in [nil, "W/\"a\""] {
            let modified = DownloadMachine.now - age
            var machine = DownloadMachine.sample(entityTag: tag, lastModified: modified)
            let fields = machine.nextRequest()?.fields
            #expect(fields?.contains("Range") == isValidator)
            #expect(
                fields?["If-Range"] == (isValidator ? HTTPDate(secondsSinceEpoch: modified).serialized : nil))
            #expect(machine.position == (isValidator ? 40 : 0))
        }
    }

    @Test("RNG-27: without a validator everything is requested again")
    func noValidator() {
        var machine = DownloadMachine.sample(entityTag: nil)
        #expect(machine.nextRequest()?.start == 0)
        #expect(machine.representation == nil)
    }

    @Test("RNG-27: content with a content coding is continued only with a strong tag")
    func contentCoding() {
        var dated = DownloadMachine.sample(
            entityTag: nil, lastModified: DownloadMachine.now - 3600, contentCoding: "gzip")
        #expect(dated.nextRequest()?.start == 0)
        var tagged = DownloadMachine.sample(contentCoding: "gzip")
        #expect(tagged.nextRequest()?.start == 40)
        #expect(tagged.reception(206, part.merging(["Content-Encoding": "br"])) == .inconsistent)
        guard case .resume = tagged.reception(206, part) else {
            Issue.record("a part without Content-Encoding was not accepted")
            return
        }
    }

    // MARK: 200

    @Test("RNG-29: after 200 to a request for a part, the content of this response is received from the beginning")
    func completeResponse() {
        var machine = DownloadMachine.sample()
        let fields: Fields = ["ETag": "\"b\"", "Content-Length": "70"]
        guard case .replace(let representation) = machine.reception(200, fields) else {
            Issue.record("not accepted")
            return
        }
        #expect(representation.total == 70)
        machine.answer(200, fields, position: 30, ending: .cut(.connection))
        #expect(machine.wait == 0)
        _ = machine.next()
        #expect(machine.nextRequest()?.fields == ["Range": "bytes=30-", "If-Range": "\"b\""])
        machine.answer(206, ["ETag": "\"b\"", "Content-Range": "bytes 30-69/70"], position: 70)
        #expect(machine.isFinished)
    }

    @Test("RNG-29: 200 with the same strong validator and another length replaces nothing")
    func contradictoryLength() {
        for length in ["0", "26", "99", "101"] {
            var machine = DownloadMachine.sample()
            #expect(machine.reception(200, ["ETag": "\"a\"", "Content-Length": length]) == .unexpected)
        }
        // The length is known from an earlier response, so the end of the content is known without Content-Length.
        var machine = DownloadMachine.sample()
        machine.answer(200, ["ETag": "\"a\""], position: 15)
        #expect(!machine.isFinished)
        _ = machine.next()
        // The bytes that were kept reach further than this response, so the download continues after them.
        #expect(machine.nextRequest()?.start == 40)
        machine.answer(206, part, position: 100)
        #expect(machine.isFinished)
    }

    @Test("a Content-Length that exceeds the largest integer is a violation, even on two lines", arguments: [1, 2])
    func overflowingLength(lineCount: Int) {
        var fields = part
        fields.remove("Content-Length")
        for _ in 1...lineCount { fields.append("Content-Length", "9223372036854775808") }
        for status in [200, 206] as [Status] {
            var machine = DownloadMachine.sample()
            guard case .violation = machine.reception(status, fields) else {
                Issue.record("\(status) was accepted")
                continue
            }
        }
    }

    @Test("RNG-28: a part with status 200 is not accepted as the complete representation")
    func partAs200() {
        var machine = DownloadMachine.sample()
        #expect(machine.reception(200, part) == .inconsistent)
        let complete: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 0-99/100", "Content-Length": "100"]
        guard case .replace = machine.reception(200, complete) else {
            Issue.record("the complete representation was not accepted")
            return
        }
    }

    @Test("RNG-32: if content ends before its Content-Length is reached, the missing bytes are requested")
    func short() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        machine.answer(200, ["ETag": "\"a\"", "Content-Length": "100"], position: 60)
        _ = machine.next()
        #expect(machine.nextRequest()?.fields["Range"] == "bytes=60-")
    }

    @Test("content without a length is complete when its framing ends; if it is cut, the missing bytes are requested")
    func chunked() {
        let fields: Fields = ["ETag": "\"a\"", "Transfer-Encoding": "chunked"]
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        machine.answer(200, fields, position: 60, ending: .cut(.connection))
        #expect(!machine.isFinished)
        _ = machine.next()
        #expect(machine.nextRequest()?.start == 60)
        machine.answer(200, fields, position: 75)
        #expect(machine.isFinished)
        #expect(machine.representation?.total == 75)
    }

    @Test("a response without content is an empty representation")
    func empty() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        machine.answer(200, ["Content-Length": "0"], position: 0)
        #expect(machine.isFinished)
    }

    @Test(
        "a 2xx status other than 200 and 203 is not accepted as the representation",
        arguments: [201, 202, 204, 205, 207, 226] as [Status])
    func otherSuccess(status: Status) {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        #expect(machine.reception(status, ["ETag": "\"a\""]) == .unexpected)
        machine.answer(status, ["ETag": "\"a\""])
        #expect(!machine.isFinished && machine.wait != nil)
        _ = machine.next()
        machine.answer(203, ["Content-Length": "0"], position: 0)
        #expect(machine.isFinished)
    }

    // MARK: Replacements

    @Test("a replacement that ends early is resumed; if the earlier representation returns, its bytes are used again")
    func replacement() {
        var machine = DownloadMachine.sample()
        machine.answer(200, ["ETag": "\"b\"", "Content-Length": "90"], position: 10, ending: .cut(.connection))
        _ = machine.next()
        #expect(machine.nextRequest()?.fields == ["Range": "bytes=10-", "If-Range": "\"b\""])
        #expect(machine.earlier?.position == 40)
        #expect(machine.reception(200, ["ETag": "\"a\""]) == .earlier)
        machine.answer(200, ["ETag": "\"a\""])
        #expect(machine.nextRequest()?.fields == ["Range": "bytes=40-", "If-Range": "\"a\""])
        #expect(machine.earlier == nil)
    }

    @Test("a server that alternates between two representations ends the download")
    func alternatingRepresentations() {
        var machine = DownloadMachine.sample()
        for number in 0..<100 {
            guard machine.failure == nil else {
                #expect(number < 40)
                return
            }
            while case .wait = machine.next() {}
            machine.answer(200, ["ETag": number % 2 == 0 ? "\"b\"" : "\"a\""], position: 5, ending: .cut(.connection))
        }
        Issue.record("the download did not end after 100 responses")
    }

    @Test("the received bytes are kept if the representation is sent again from its beginning and cut before their end")
    func shorterRepetition() {
        var machine = DownloadMachine.sample()
        machine.answer(200, ["ETag": "\"a\"", "Content-Length": "100"], position: 30, ending: .cut(.connection))
        _ = machine.next()
        #expect(machine.nextRequest()?.start == 40 && machine.earlier == nil)
        machine.answer(200, ["ETag": "\"a\"", "Content-Length": "100"], position: 50, ending: .cut(.connection))
        _ = machine.next()
        #expect(machine.nextRequest()?.start == 50)
    }

    @Test("a transfer coding other than chunked and two different lengths are violations")
    func framing() {
        var machine = DownloadMachine.sample()
        var lengths: Fields = ["Content-Length": "10"]
        lengths.append("Content-Length", "11")
        for fields in [["Transfer-Encoding": "gzip, chunked"], lengths] as [Fields] {
            guard case .violation = machine.reception(200, fields) else {
                Issue.record("\(fields) was accepted")
                continue
            }
        }
        guard case .replace = machine.reception(200, ["Transfer-Encoding": "Chunked", "ETag": "\"a\""]) else {
            Issue.record("chunked was not accepted")
            return
        }
    }

    // MARK: 416

    @Test("RNG-30: a 416 whose size is the count of received bytes completes the download if the validator is the same")
    func unsatisfiedAtEnd() {
        var machine = DownloadMachine.sample(position: 100)
        #expect(machine.nextRequest()?.fields["Range"] == "bytes=100-")
        machine.answer(416, ["ETag": "\"a\"", "Content-Range": "bytes */100"])
        #expect(machine.isFinished)
    }

    @Test("RNG-30: after 416 without a validator, the last byte is requested again to compare the validator")
    func unsatisfiedWithoutValidator() {
        var machine = DownloadMachine.sample(position: 100)
        machine.answer(416, ["Content-Range": "bytes */100"])
        #expect(machine.nextRequest()?.fields == ["Range": "bytes=99-", "If-Range": "\"a\""])
        var again = machine
        machine.answer(206, ["ETag": "\"a\"", "Content-Range": "bytes 99-99/100"], position: 100)
        #expect(machine.isFinished)
        // A server that responds with 416 here has another representation.
        again.answer(416, ["Content-Range": "bytes */100"])
        #expect(again.nextRequest()?.start == 0)
    }

    @Test(
        "RNG-30: after any other 416 the download starts again from the beginning",
        arguments: [
            ["ETag": "\"b\"", "Content-Range": "bytes */100"], ["ETag": "\"a\"", "Content-Range": "bytes */99"],
            ["ETag": "\"a\"", "Content-Range": "bytes */101"], ["ETag": "\"a\"", "Content-Range": "bytes 100-100/101"],
            ["ETag": "\"a\"", "Content-Range": "bytes */*"], ["ETag": "\"a\""],
        ] as [Fields])
    func unsatisfied(fields: Fields) {
        var machine = DownloadMachine.sample(position: 100)
        machine.answer(416, fields)
        #expect(machine.nextRequest()?.fields.isEmpty == true)
    }

    @Test("a 416 response to a request without Range ends the download as refused")
    func unsatisfiedWithoutRange() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        machine.answer(416, ["Content-Range": "bytes */0"])
        #expect(machine.failure == .refused(416))
    }
}
