#!/usr/bin/env node
import { constants, setPriority } from 'node:os';
import process from 'node:process';
import { catchSignals } from './entrances/cli/signals.ts';
import { importHttpWithoutFetch } from './platform/undocumented/http-without-fetch.ts';
import { keepCompiled } from './spawning/processes/compile-cache.ts';
import { restartWithMemorySettings } from './spawning/processes/memory-settings.ts';

const isStart = /^(?:start|gateway)$/.test(process.argv[2] ?? '');
// First: a process that is restarted then finds this file without its types as well, and loads no type stripper.
keepCompiled(process.env);
if (isStart) restartWithMemorySettings(process.env);
// Those who use the hub meanwhile come first. Before there are threads that compress and write: they inherit it.
if (process.argv[2] === 'backup') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
// Before the program is loaded, which takes longer than an operator's tools wait with their signals.
const signals = isStart ? catchSignals() : undefined;
await importHttpWithoutFetch();
const { run } = await import('./composition/run.ts');
await run(signals);
