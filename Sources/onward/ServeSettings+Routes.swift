import CommandLineInterface
import Foundation
import Gateway
import SystemCalls
import TransferServer

/// The options for applications behind the server.
extension ServeSettings {
    /// A route, or the mistakes in its settings.
    struct ConfiguredRoute {
        /// The option, or the file and the line.
        let place: String
        let route: Result<Route, SettingError>

        init(_ text: String, at place: String) {
            self.place = place
            do throws(SettingError) {
                route = .success(try Route(parsing: text) { try? .seconds(Quantity.seconds($0)) })
            } catch { route = .failure(error) }
        }
    }

    /// The paths that belong to applications.
    var routes: [Route] {
        configuredRoutes.compactMap {
            var route = try? $0.route.get()
            route?.origin.caFile = originCertificates
            return route
        }
    }

    /// Reads the routes of a file.
    static func routes(in path: String) throws(OptionError) -> [ConfiguredRoute] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw OptionError("\(path) cannot be read")
        }
        var routes: [ConfiguredRoute] = []
        let lines = String(decoding: data, as: UTF8.self).split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (number, line) in lines.enumerated() {
            let text = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            if !text.isEmpty { routes.append(ConfiguredRoute(text, at: "\(path), line \(number + 1)")) }
        }
        return routes
    }

    /// Reports the mistakes of all routes at once.
    func checkRoutes() throws(OptionError) {
        var paths: Set<String> = []
        var mistakes: [String] = []
        for configured in configuredRoutes {
            do throws(SettingError) {
                for mistake in self.mistakes(in: try configured.route.get(), &paths) {
                    mistakes.append("\(configured.place): \(mistake)")
                }
            } catch { mistakes.append("\(configured.place): \(error)") }
        }
        guard mistakes.isEmpty else { throw OptionError(mistakes.joined(separator: "\n")) }
        if authorizationURL != nil && server.isAnonymousAllowed {
            throw OptionError("--auth-url and --allow-anonymous cannot be combined")
        }
    }

    /// Rejects secrets that would not be used, and programs that cannot be run.
    func checkEvents() throws(OptionError) {
        if eventSecretsFile != nil {
            guard case .url? = events?.destination.destination else {
                throw OptionError(
                    "--events-secrets needs --events with a URL: only requests are signed, not the input of a program")
            }
        }
        if case .program(let path)? = events?.destination.destination { try Self.checkProgram(path, of: "--events") }
    }

    /// Rejects a program that cannot be run.
    func checkPublicationCheck() throws(OptionError) {
        if case .program(let path)? = publicationCheck?.destination { try Self.checkProgram(path, of: "--check") }
    }

    private static func checkProgram(_ path: String, of option: String) throws(OptionError) {
        if let obstacle = ProgramRun.obstacle(to: path) {
            throw OptionError("\(option): \(path) is not a program that this user can run: \(obstacle)")
        }
    }

    /// - Parameter paths: the paths of the routes before this one.
    private func mistakes(in route: Route, _ paths: inout Set<String>) -> [String] {
        var mistakes: [String] = []
        if let used = OwnPaths(server.ownPrefix).path(of: route.segments) {
            mistakes.append(
                "the route \(route.path) is not possible, because this server uses \(used) itself; --own-prefix moves the"
                    + " server's own paths")
        }
        if !paths.insert(route.path).inserted { mistakes.append("the route \(route.path) is given twice") }
        if route.access == .authorized && tokenFile == nil && authorizationURL == nil {
            mistakes.append(
                "the route \(route.path) has no access rule: require tokens with --token-file, let an application decide"
                    + " with --auth-url, or add access=open if the application authorizes its clients itself")
        }
        return mistakes
    }
}
