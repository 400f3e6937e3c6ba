import Foundation

/// Foundation's own session does all of this on Apple's platforms.
public typealias ResumableURLSession = URLSession

/// On Apple's platforms the ordinary delegate of tasks receives interim responses.
public typealias URLSessionInformationalResponseDelegate = URLSessionTaskDelegate
