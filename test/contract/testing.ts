/**
 * For those who write plugins: what the hub relies on in every plugin, as tests for any test runner,
 * and a host to create plugins with. Node.js alone is enough: `hub test-plugins`.
 */
export {
  type AuthenticatorContract,
  authenticatorContract,
  type FormContract,
} from './authenticator-contract.ts';
export type { ContractTest } from './contract-test.ts';
export { createSpawnRequest } from './spawn-request.ts';
export {
  type SpawnerCommands,
  type SpawnerContract,
  type SpawnerEngine,
  spawnerContract,
} from './spawner-contract.ts';
export { createTestHost, type TestHost, type TestHostOptions } from './test-host.ts';
