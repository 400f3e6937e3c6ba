/// The source of the URL of a finished file.
enum DownloadSource: String, CaseIterable {
    case contentLocation = "Content-Location"
    case location = "Location"
    case requestTarget = "the request target"

    func fileURL(in response: Response, to request: Request, at endpoint: Endpoint) -> Endpoint? {
        let base = endpoint.at(request.target)
        switch self {
        case .contentLocation: return response.single("Content-Location").flatMap { base.resolving($0) }
        case .location: return response.location.flatMap { base.resolving($0) }
        case .requestTarget: return base
        }
    }
}
