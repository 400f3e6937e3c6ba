import HTTPSemantics

extension UploadResponses {
    /// Chooses the dialect that the request names, or otherwise the dialect of the request that created its upload
    /// (draft appendix B).
    ///
    /// An unusable version is handled like an absent version, except that no 104 is sent, because the client expects
    /// its own version in a 104.
    /// - Parameters:
    ///   - version: the HTTP version of the request; HTTP/1.0 does not have interim responses.
    ///   - storedDialect: the dialect of the creation, if the request is for an upload resource.
    ///   - withholding: why only final responses may be sent; `nil` if the server has no such reason.
    ///   - announcesWithoutVersion: whether requests without a version get 104, as in the published protocol. The draft
    ///     forbids it.
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
