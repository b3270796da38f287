/** What passes through a route. Kept by the forwarders, and taken by what measures. */
export interface RouteLoad {
  /** Requests that are over, also those that were refused. */
  requests: number;
  /** Answers that the upstream began, and how long those who asked had waited for them. */
  answers: number;
  answerMs: number;
  /** Through this process, now. */
  openWebSockets: number;
  /** For how long WebSockets were open through gateway processes, all added up. */
  webSocketMs: number;
}

/** What passed through a route in some time. */
export type TakenLoad = Omit<RouteLoad, 'openWebSockets'>;

export function createRouteLoad(): RouteLoad {
  return { requests: 0, answers: 0, answerMs: 0, openWebSockets: 0, webSocketMs: 0 };
}

/**
 * What has passed through a route since this was called last, `elapsedMs` ago. How many WebSockets are open
 * is told as the time for which they were: that can be added up, whoever tells it to whom.
 */
export function takeLoad(load: RouteLoad, elapsedMs: number): TakenLoad {
  const { requests, answers, answerMs, openWebSockets, webSocketMs } = load;
  load.requests = 0;
  load.answers = 0;
  load.answerMs = 0;
  load.webSocketMs = 0;
  return { requests, answers, answerMs, webSocketMs: webSocketMs + openWebSockets * elapsedMs };
}

/** Adds what passed through a gateway process. */
export function addLoad(load: RouteLoad, taken: TakenLoad): void {
  load.requests += taken.requests;
  load.answers += taken.answers;
  load.answerMs += taken.answerMs;
  load.webSocketMs += taken.webSocketMs;
}
