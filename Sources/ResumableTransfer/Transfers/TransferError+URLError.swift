extension TransferError {
    /// The code of `NSURLErrorDomain` that says the same.
    public var urlErrorCode: Int {
        switch code {
        case .paused, .cancelled, .shutDown: -999
        case .timedOut: -1001
        case .resumeDataInvalid, .resumeDataUsed: -1002
        case .hostNotFound, .proxyFailed: -1003
        case .cannotConnect: -1004
        case .proxyRefused: status == 407 ? -1013 : -1004
        case .connectionLost: -1005
        case .tooManyRedirects: -1007
        case .insecureRedirect, .locationUnusable: -1010
        case .serverUnavailable, .unexpectedResponse, .offsetConflict, .refused, .offsetLost, .offsetImpossible,
            .locationChanged,
            .resumptionUnsupported, .protocolViolation:
            -1011
        case .unauthorized: status == 403 ? -1102 : -1013
        case .authorizationFailed: -1013
        case .insecureConnection: -1200
        case .gone, .noSuchSource: -1100
        case .tooLarge: -1103
        case .sourceUnavailable, .sourceChanged: -3001
        case .destinationUnusable: -3003
        case .storageUnusable: -3000
        case .invalidRequest: -1000
        case .digestMismatch: -1015
        case .internalFailure: -1
        }
    }
}
