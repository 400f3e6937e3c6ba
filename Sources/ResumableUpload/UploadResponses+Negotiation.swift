import HTTPSemantics

extension UploadResponses {
    /// Answers a request in the dialect that it names, else in that of its upload's creation (draft appendix B).
    ///
    /// An unusable version is handled as none, but for one thing: its sender looks for that version in 104, and must not
    /// get another.
    /// - Parameters:
    ///   - version: of the request's message; HTTP/1.0 knows no interim responses.
    ///   - storedDialect: that of the creation, where the request addresses an upload resource.
    ///   - withholding: why nothing else than final responses is to be sent, where whoever serves the request knows such
    ///     a reason.
    ///   - announcesWithoutVersion: whether the published protocol is spoken to requests without a version. Before it
    ///     is published they must not get 104.
    package init(
        answering fields: Fields, version: ProtocolVersion = .http11, storedDialect: Dialect? = nil,
        announcesWithoutVersion: Bool = false, withholding: InterimObstacle? = nil
    ) {
        let named = Dialect(announcedBy: fields)
        let isUnversioned = !fields.contains(UploadFieldName.interopVersion)
        self.init(
            dialect: named ?? (announcesWithoutVersion ? .rfc : storedDialect ?? .rfc), echoesVersion: named != nil,
            interim: Self.permission(
                version: version, isNamed: named != nil, isUnversioned: isUnversioned,
                announcesWithoutVersion: announcesWithoutVersion, withholding: withholding))
    }

    private static func permission(
        version: ProtocolVersion, isNamed: Bool, isUnversioned: Bool, announcesWithoutVersion: Bool,
        withholding: InterimObstacle?
    ) -> InterimPermission {
        if version < .http11 { return .withheld(.oldHTTP) }
        if let withholding { return .withheld(withholding) }
        if isNamed || (announcesWithoutVersion && isUnversioned) { return .allowed }
        return .withheld(isUnversioned ? .noVersion : .unusableVersion)
    }
}
