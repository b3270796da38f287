/** For those who write plugins: the suites that every plugin of the hub passes. Needs Vitest. */
export {
  type AuthenticatorContract,
  describeAuthenticator,
} from './authenticator-contract.ts';
export { describeSpawner, type SpawnerContract } from './spawner-contract.ts';
export { createTestHost, type TestHost, type TestHostOptions } from './test-host.ts';
