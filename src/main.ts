#!/usr/bin/env node
import process from 'node:process';
import { catchSignals } from './cli/signals.ts';
import { keepCompiled } from './processes/compile-cache.ts';
import { restartWithMemorySettings } from './processes/memory-settings.ts';
import { importHttpWithoutFetch } from './undocumented/http-without-fetch.ts';

const isStart = /^(?:start|gateway)$/.test(process.argv[2] ?? '');
if (isStart) restartWithMemorySettings(process.env);
// Before the program is loaded, which takes longer than an operator's tools wait with their signals.
const signals = isStart ? catchSignals() : undefined;
keepCompiled(process.env);
await importHttpWithoutFetch();
const { run } = await import('./run.ts');
await run(signals);
