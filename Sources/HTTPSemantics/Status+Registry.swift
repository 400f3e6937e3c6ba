/// The registered status codes that this package uses, named after the reason phrases of the registry.
extension Status {
    public static let `continue`: Status = 100
    public static let switchingProtocols: Status = 101
    public static let uploadResumptionSupported: Status = 104
    public static let ok: Status = 200
    public static let created: Status = 201
    public static let accepted: Status = 202
    public static let noContent: Status = 204
    public static let resetContent: Status = 205
    public static let partialContent: Status = 206
    public static let movedPermanently: Status = 301
    public static let found: Status = 302
    public static let seeOther: Status = 303
    public static let notModified: Status = 304
    public static let temporaryRedirect: Status = 307
    public static let permanentRedirect: Status = 308
    public static let badRequest: Status = 400
    public static let unauthorized: Status = 401
    public static let forbidden: Status = 403
    public static let notFound: Status = 404
    public static let methodNotAllowed: Status = 405
    public static let notAcceptable: Status = 406
    public static let requestTimeout: Status = 408
    public static let conflict: Status = 409
    public static let gone: Status = 410
    public static let lengthRequired: Status = 411
    public static let preconditionFailed: Status = 412
    public static let contentTooLarge: Status = 413
    public static let uriTooLong: Status = 414
    public static let unsupportedMediaType: Status = 415
    public static let rangeNotSatisfiable: Status = 416
    public static let expectationFailed: Status = 417
    public static let misdirectedRequest: Status = 421
    public static let unprocessableContent: Status = 422
    public static let locked: Status = 423
    public static let tooEarly: Status = 425
    public static let upgradeRequired: Status = 426
    public static let preconditionRequired: Status = 428
    public static let tooManyRequests: Status = 429
    public static let requestHeaderFieldsTooLarge: Status = 431
    public static let internalServerError: Status = 500
    public static let notImplemented: Status = 501
    public static let badGateway: Status = 502
    public static let serviceUnavailable: Status = 503
    public static let gatewayTimeout: Status = 504
    public static let httpVersionNotSupported: Status = 505
    public static let insufficientStorage: Status = 507

    /// The phrase of the IANA registry, for the status line and as a title; the name of the class for other codes of
    /// 100…599, and "Unknown" beyond them.
    public var reasonPhrase: String {
        switch self {
        case .continue: "Continue"
        case .switchingProtocols: "Switching Protocols"
        case .uploadResumptionSupported: "Upload Resumption Supported"
        case .ok: "OK"
        case .created: "Created"
        case .accepted: "Accepted"
        case .noContent: "No Content"
        case .resetContent: "Reset Content"
        case .partialContent: "Partial Content"
        case .movedPermanently: "Moved Permanently"
        case .found: "Found"
        case .seeOther: "See Other"
        case .notModified: "Not Modified"
        case .temporaryRedirect: "Temporary Redirect"
        case .permanentRedirect: "Permanent Redirect"
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .notAcceptable: "Not Acceptable"
        case .requestTimeout: "Request Timeout"
        case .conflict: "Conflict"
        case .gone: "Gone"
        case .lengthRequired: "Length Required"
        case .preconditionFailed: "Precondition Failed"
        case .contentTooLarge: "Content Too Large"
        case .uriTooLong: "URI Too Long"
        case .unsupportedMediaType: "Unsupported Media Type"
        case .rangeNotSatisfiable: "Range Not Satisfiable"
        case .expectationFailed: "Expectation Failed"
        case .misdirectedRequest: "Misdirected Request"
        case .unprocessableContent: "Unprocessable Content"
        case .locked: "Locked"
        case .tooEarly: "Too Early"
        case .upgradeRequired: "Upgrade Required"
        case .preconditionRequired: "Precondition Required"
        case .tooManyRequests: "Too Many Requests"
        case .requestHeaderFieldsTooLarge: "Request Header Fields Too Large"
        case .internalServerError: "Internal Server Error"
        case .notImplemented: "Not Implemented"
        case .badGateway: "Bad Gateway"
        case .serviceUnavailable: "Service Unavailable"
        case .gatewayTimeout: "Gateway Timeout"
        case .httpVersionNotSupported: "HTTP Version Not Supported"
        case .insufficientStorage: "Insufficient Storage"
        case _ where isInformational: "Informational"
        case _ where isSuccessful: "Successful"
        case _ where isRedirection: "Redirection"
        case _ where isClientError: "Client Error"
        case _ where isServerError: "Server Error"
        default: "Unknown"
        }
    }
}
