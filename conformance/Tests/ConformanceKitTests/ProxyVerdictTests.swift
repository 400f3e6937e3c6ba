import HTTPSemantics
import Testing

@testable import ConformanceKit

/// Tests of the conclusions from the behavior of a proxy.
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
        behavior.isOriginPassed = true
        behavior.isRangePassed = true
        change(&behavior)
        return ProxyVerdict(behavior)
    }

    @Test("A proxy that forwards everything needs no settings")
    func right() {
        let verdict = behavior { _ in }
        #expect(verdict.usability == .usable && verdict.settings == ["interim responses: on"])
    }

    @Test("A proxy that buffers bodies, or that makes interrupted bodies look complete, is unusable")
    func unusable() {
        #expect(behavior { $0.body = .withheld }.usability == .unusable)
        #expect(behavior { $0.abort = .looksComplete }.usability == .unusable)
        #expect(behavior { $0.changedFields = ["Upload-Offset"] }.usability == .unusable)
        #expect(behavior { $0.refusedMethods = ["PATCH"] }.usability == .unusable)
    }

    @Test("A proxy with a fault for which there is a setting is usable with this setting")
    func limited() {
        for verdict in [
            behavior { $0.interim = .treatedAsFinal }, behavior { $0.interim = .fatal("503") },
            behavior { $0.chunkedAbort = .looksComplete }, behavior { $0.earlyAnswer = .late },
            behavior { $0.isOriginPassed = false }, behavior { $0.refusedContent = 1 << 21 },
        ] {
            #expect(verdict.usability == .limited && verdict.settings.count >= 1)
        }
    }
}
