import HTTPSemantics

extension UploadResponses {
    /// Answers a request in the dialect that it names, else in that of its upload's creation (draft appendix B).
    ///
    /// An unusable version is handled as none, but for one thing: its sender looks for that version in 104, and must not
    /// get another.
    /// - Parameters:
    ///   - version: of the request's message; HTTP/1.0 knows no interim responses.
    ///   - storedDialect: that of the creation, where the request addresses an upload resource.
    ///   - announcesWithoutVersion: whether the published protocol is spoken to requests without a version. Before it
    ///     is published they must not get 104.
    public init(
        answering fields: Fields, version: ProtocolVersion = .http11, storedDialect: Dialect? = nil,
        announcesWithoutVersion: Bool = false
    ) {
        let named = Dialect(announcedBy: fields)
        let isUnversioned = !fields.contains(UploadFieldName.interopVersion)
        self.init(
            dialect: named ?? (announcesWithoutVersion ? .rfc : storedDialect ?? .rfc), echoesVersion: named != nil,
            allowsInterimResponses: version >= .http11 && (named != nil || (announcesWithoutVersion && isUnversioned)))
    }
}
