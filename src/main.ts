#!/usr/bin/env node
import process from 'node:process';
import { catchSignals } from './cli/signals.ts';
import { keepCompiled } from './processes/compile-cache.ts';

// Before the program is loaded, which takes longer than an operator's tools wait with their signals.
const signals = process.argv[2] === 'start' ? catchSignals() : undefined;
keepCompiled(process.env);
const { run } = await import('./run.ts');
await run(signals);
