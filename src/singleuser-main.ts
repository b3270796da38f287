#!/usr/bin/env node
import { keepCompiled } from './spawning/processes/compile-cache.ts';

// Not the environment itself: it is that of the user's server.
keepCompiled({ ...process.env });
const { run } = await import('./singleuser/run.ts');
await run();
