/**
 * What many sockets read into, one after the other: Node reads a socket and calls back with what it has read
 * in one go, before it reads the next. A buffer for each read costs more than parsing what is in it, and one
 * for each idle socket would be sixty-four kilobytes of memory. Its content is lent until the callback returns.
 */
export const sharedReadBuffer = Buffer.allocUnsafeSlow(64 * 1024);
