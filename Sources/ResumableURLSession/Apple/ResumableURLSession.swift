import Foundation

/// Foundation's own session does all of this on Apple's platforms.
public typealias ResumableURLSession = URLSession

/// Interim responses are told by the ordinary delegate of tasks there.
public typealias URLSessionInformationalResponseDelegate = URLSessionTaskDelegate
