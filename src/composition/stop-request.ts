/** The wish of an administrator that the hub stop. */
export interface StopRequest {
  /** Resolves when the hub is asked to stop. */
  readonly requested: Promise<void>;
  /** Whether servers of users end with the hub. */
  stopsServers(): boolean;
  request(options: { readonly servers?: boolean | undefined }): void;
}

/** `stopsServers` is what holds unless the request says otherwise. */
export function createStopRequest(options: { readonly stopsServers: boolean }): StopRequest {
  const { promise, resolve } = Promise.withResolvers<void>();
  let { stopsServers } = options;
  return {
    requested: promise,
    stopsServers: () => stopsServers,
    request({ servers }) {
      stopsServers = servers ?? stopsServers;
      resolve();
    },
  };
}
