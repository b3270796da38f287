import { pid } from 'node:process';

/** Identifies the hub of a test: hubs that test files run at the same time would end each other's programs. */
export const testHubId = `hub-${pid}`;
