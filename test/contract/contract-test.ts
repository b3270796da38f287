/** One test of a contract, for any test runner: `test(name, run)`. */
export interface ContractTest {
  readonly name: string;
  run(): Promise<void>;
}
