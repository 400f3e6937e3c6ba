import HTTPSemantics
import Testing

@testable import ConformanceKit

/// Conclusions from plain values.
@Suite("Proxy verdicts")
struct ProxyVerdictTests {
    private func behavior(_ change: (inout ProxyBehavior) -> Void) -> ProxyVerdict {
        var behavior = ProxyBehavior()
        behavior.body = .streamed
        behavior.chunkedBody = .streamed
        behavior.interim = .live
        behavior.abort = .seen(milliseconds: 1, bytesMissing: 0)
        behavior.chunkedAbort = behavior.abort
        behavior.earlyAnswer = .passed(milliseconds: 1)
        behavior.longestContent = 1 << 40
        behavior.tellsOrigin = true
        behavior.passesRanges = true
        change(&behavior)
        return ProxyVerdict(behavior)
    }

    @Test("Nothing is to be set for a proxy that lets everything through")
    func right() {
        let verdict = behavior { _ in }
        #expect(verdict.usability == .usable && verdict.settings == ["interim responses: on"])
    }

    @Test("A body that is held back, or that ends cleanly when it was cut, makes a proxy unusable")
    func unusable() {
        #expect(behavior { $0.body = .withheld }.usability == .unusable)
        #expect(behavior { $0.abort = .faked }.usability == .unusable)
        #expect(behavior { $0.changedFields = ["Upload-Offset"] }.usability == .unusable)
        #expect(behavior { $0.refusedMethods = ["PATCH"] }.usability == .unusable)
    }

    @Test("What a setting mends leaves a proxy usable")
    func limited() {
        for verdict in [
            behavior { $0.interim = .takenForFinal }, behavior { $0.interim = .fatal("503") },
            behavior { $0.chunkedAbort = .faked }, behavior { $0.earlyAnswer = .late },
            behavior { $0.tellsOrigin = false }, behavior { $0.refusedContent = 1 << 21 },
        ] {
            #expect(verdict.usability == .limited && verdict.settings.count >= 1)
        }
    }

    @Test("Content is counted without its coding, whatever the pieces")
    func content() {
        let coded = Array("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n".utf8)
        for size in 1...coded.count {
            var content = IncomingContent(.chunked)
            var remaining = coded[...]
            while !remaining.isEmpty {
                #expect(!content.isComplete)
                content.take(remaining.prefix(size))
                remaining = remaining.dropFirst(size)
            }
            #expect(content.isComplete && content.count == 11 && !content.isBroken)
        }
        var cut = IncomingContent(.chunked)
        cut.take(coded.dropLast(2))
        #expect(!cut.isComplete && cut.count == 11)
        var wrong = IncomingContent(.chunked)
        wrong.take(Array("zz\r\n".utf8))
        #expect(wrong.isBroken && !wrong.isComplete)
        var length = IncomingContent(.length(3))
        length.take(Array("abcd".utf8))
        #expect(length.isComplete && length.count == 3)
        #expect(IncomingContent(.length(0)).isComplete)
    }
}
