import HTTPTransport
import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension TaskExchanges {
    /// Requests credentials from the delegate after a 401 or 407 with a challenge for Basic authentication.
    /// - Returns: whether the request is made again with credentials.
    func challenged(by response: TransferResponse, to request: TransferRequest) async throws -> Bool {
        let core = task.core
        guard let url = URL(string: request.uri),
            let space = URLProtectionSpace(response, from: url, proxy: task.proxy),
            let failure = HTTPURLResponse(status: response.status, fields: response.fields, url: url)
        else { return false }
        let proposed = credentials.proposal(for: space)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed.credential,
            previousFailureCount: proposed.failures, failureResponse: failure, error: nil, sender: UnusedSender())
        let session = core.session
        let task = task
        let answer: (URLSession.AuthChallengeDisposition, URLCredential?)? = await ask { delegate, answer in
            delegate.urlSession(session, task: task, didReceive: challenge) { answer(($0, $1)) }
        }
        let (disposition, credential) = answer ?? (.performDefaultHandling, nil)
        switch disposition {
        case .useCredential: return credentials.use(credential, for: space)
        // A credential from the storage is not proposed again after the server has rejected it.
        case .performDefaultHandling: return credentials.use(proposed.credential, for: space)
        case .rejectProtectionSpace: return false
        case .cancelAuthenticationChallenge: throw TaskFailure.challengeCanceled
        }
    }
}

/// The credentials of one task, for Basic authentication (RFC 7617).
final class TaskCredentials: Sendable {
    private struct State {
        /// The credential that was chosen last for each server and proxy.
        var used: [ProtectionSpaceKey: URLCredential] = [:]
        /// The protection spaces whose credential no response has confirmed yet.
        var unconfirmed: [ProtectionSpaceKey: URLProtectionSpace] = [:]
        var failures: [ProtectionSpaceKey: Int] = [:]
    }

    private let storage: URLCredentialStorage?
    private let state = Monitor(State())

    init(_ storage: URLCredentialStorage?) {
        self.storage = storage
    }

    /// Returns the credential to propose for a challenge, and the number of failures so far. If a credential was used
    /// before, the challenge counts as its failure. A stored credential that has failed is not proposed.
    func proposal(for space: URLProtectionSpace) -> (credential: URLCredential?, failures: Int) {
        let stored = storage.flatMap { $0.defaultCredential(for: $0.equivalent(of: space)) }
        let key = ProtectionSpaceKey(space)
        return state.withLock { state in
            if state.used[key] != nil { state.failures[key, default: 0] += 1 }
            let isRejected = state.used[key] != nil && state.used[key] == stored
            return (isRejected ? nil : stored, state.failures[key] ?? 0)
        }
    }

    /// Uses a credential for later requests to the server or proxy of the protection space.
    /// - Returns: false if the credential has no user or no password; then nothing changes.
    func use(_ credential: URLCredential?, for space: URLProtectionSpace) -> Bool {
        guard let credential, credential.user != nil, credential.password != nil else { return false }
        let key = ProtectionSpaceKey(space)
        state.withLock { state in
            // A server can have several realms, but a request has only one credential for the server.
            for other in state.used.keys where other != key && other.hasSameReceiver(as: key) {
                state.used[other] = nil
                state.unconfirmed[other] = nil
            }
            state.used[key] = credential
            state.unconfirmed[key] = space
        }
        return true
    }

    /// Adds the credentials to a request.
    func authorize(_ request: inout TransferRequest, to url: URL) {
        let used = state.withLock { $0.used }
        for (space, credential) in used where space.receivesRequest(to: url) {
            request.fields.set(
                space.isProxy ? "Proxy-Authorization" : "Authorization",
                BasicCredentials.authorization("\(credential.user ?? ""):\(credential.password ?? "")"))
        }
    }

    /// Stores the credentials that a response confirms, if their persistence allows it.
    func received(_ response: TransferResponse, to url: URL) {
        guard response.status != 401, response.status != 407 else { return }
        let confirmed = state.withLock { state in
            let spaces = state.unconfirmed.filter { $0.key.receivesRequest(to: url) }
            for key in spaces.keys {
                state.unconfirmed[key] = nil
                state.failures[key] = nil
            }
            return spaces.compactMap { key, space in state.used[key].map { (space, $0) } }
        }
        guard let storage else { return }
        for (space, credential) in confirmed { storage.set(credential, for: storage.equivalent(of: space)) }
    }
}

/// The properties by which protection spaces are compared. FoundationNetworking's objects are only equal to themselves.
private struct ProtectionSpaceKey: Hashable {
    let isProxy: Bool
    let scheme: String?
    let host: String
    let port: Int
    let realm: String?
    let method: String

    init(_ space: URLProtectionSpace) {
        isProxy = space.isProxy()
        scheme = space.protocol?.lowercased()
        host = space.host.lowercased()
        port = space.port
        realm = space.realm
        method = space.authenticationMethod
    }

    /// Whether both protection spaces belong to the same server, or both to the same proxy.
    func hasSameReceiver(as other: ProtectionSpaceKey) -> Bool {
        isProxy == other.isProxy && scheme == other.scheme && host == other.host && port == other.port
    }

    /// Whether the server or proxy of this protection space receives a request to this URL. A proxy receives only
    /// requests with `http`: it forwards a tunnel without reading the requests in it.
    func receivesRequest(to url: URL) -> Bool {
        guard let uri = RequestURI(url) else { return false }
        if isProxy { return uri.scheme == "http" }
        return scheme == uri.scheme && host == url.host?.lowercased() && port == uri.port
    }
}

extension URLCredentialStorage {
    /// Returns the key of the storage that is equal to `space` by ``ProtectionSpaceKey``; `space` if there is none.
    fileprivate func equivalent(of space: URLProtectionSpace) -> URLProtectionSpace {
        let key = ProtectionSpaceKey(space)
        return allCredentials.keys.first { ProtectionSpaceKey($0) == key } ?? space
    }
}

extension URLProtectionSpace {
    /// The protection space of a 401 or 407; `nil` if it does not offer Basic authentication.
    convenience init?(_ response: TransferResponse, from url: URL, proxy: URL?) {
        let isProxy = response.status == 407
        let values = response.fields.values(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
        let challenges = AuthenticationChallenge.challenges(parsing: values)
        guard let basic = challenges.first(where: { $0.scheme == "basic" }), let host = url.host,
            let port = RequestURI(url)?.port, let scheme = url.scheme
        else { return nil }
        // Some servers omit the realm, although it is required (RFC 7617 section 2).
        let realm = basic.parameters["realm"] ?? ""
        if isProxy {
            guard let proxy, let host = proxy.host, let port = RequestURI(proxy)?.port else { return nil }
            self.init(
                proxyHost: host, port: port, type: NSURLProtectionSpaceHTTPProxy, realm: realm,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        } else {
            self.init(
                host: host, port: port, protocol: scheme.lowercased(), realm: realm,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        }
    }
}

/// The sender of a challenge, which `URLSession` does not use: the delegate calls the completion handler.
private final class UnusedSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
