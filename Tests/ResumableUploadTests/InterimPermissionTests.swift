import HTTPSemantics
import ResumableUpload
import Testing

@Suite("Permission to send 104, and the reasons against it")
struct InterimPermissionTests {
    private func permission(
        _ fields: Fields, version: ProtocolVersion = .http11, isAnnouncedWithoutVersion: Bool = false,
        withholding: InterimObstacle? = nil
    ) -> InterimPermission {
        UploadResponses(
            answering: fields, version: version, isAnnouncedWithoutVersion: isAnnouncedWithoutVersion,
            withholding: withholding
        ).interim
    }

    @Test("INT-02 VER-01 VER-02: 104 depends on the HTTP version, the draft version and the server's configuration")
    func reasons() {
        let named: Fields = ["Upload-Draft-Interop-Version": "8"]
        #expect(permission(named) == .allowed)
        #expect(permission([:]) == .withheld(.noVersion))
        #expect(permission([:], isAnnouncedWithoutVersion: true) == .allowed)
        for void in ["2", "99", "?1", "8, 8", ""] {
            let fields: Fields = ["Upload-Draft-Interop-Version": void]
            #expect(permission(fields) == .withheld(.unusableVersion), "\(void)")
            #expect(permission(fields, isAnnouncedWithoutVersion: true) == .withheld(.unusableVersion), "\(void)")
        }
        #expect(permission(named, version: .http10) == .withheld(.oldHTTP))
        #expect(permission(named, withholding: .declined) == .withheld(.declined))
        #expect(permission([:], isAnnouncedWithoutVersion: true, withholding: .turnedOff) == .withheld(.turnedOff))
        #expect(permission(named, version: .http10, withholding: .turnedOff) == .withheld(.oldHTTP))
    }

    @Test("The decision contains the reason why a request gets no upload resource", arguments: Dialect.allCases)
    func plain(dialect: Dialect) {
        func decide(
            _ isComplete: Bool?, _ fields: Fields = [:], announces: Bool = true
        ) -> Creation.Decision {
            Creation(dialect: dialect, isComplete: isComplete, framing: .length(10), fields: fields)
                .decide(limits: UploadLimits(minSize: 11), announces: announces)
        }
        func reason(_ decision: Creation.Decision) -> Creation.PlainReason? {
            if case .plain(_, let reason) = decision { reason } else { nil }
        }
        let name = dialect.completenessField(true).name
        #expect(reason(decide(nil)) == .noCompleteness)
        #expect(reason(decide(nil, Fields([(name, "true")]))) == .invalidCompleteness)
        #expect(reason(decide(true)) == .belowMinSize)
        #expect(reason(decide(false)) == nil)
        let unannounced = Creation(dialect: dialect, isComplete: true, framing: .length(10), fields: [:])
            .decide(limits: UploadLimits(), announces: false)
        #expect(reason(unannounced) == (dialect.isFinalLocationUploadResource ? nil : .unannounced))
    }
}
