// SPDX-License-Identifier: MIT
// As probe.py, in JavaScript.
const fs = require('fs');
const { spawnSync } = require('child_process');

const status = fs.readFileSync('/proc/self/status', 'utf8').split('\n');
console.log(status.filter((line) => /^(Sig(Blk|Ign|Cgt)|Umask|Threads)/.test(line)).join('\n'));
console.log(fs.readdirSync('/proc/self/fd').map(Number).sort((a, b) => a - b).join(' '), process.cwd());
console.log(Object.keys(process.env).filter((k) => !/^(LD_PRELOAD|LEAKWATCH_OPTIONS)$/.test(k)).sort().join(' '));
const map = new Map();
for (let i = 0; i < 50000; i++)
	map.set(`k${i * 7919 % 5003}`, { i, text: 'y'.repeat(i % 30) });
console.log(map.size, JSON.stringify([...map.values()]).length, Buffer.alloc(1 << 20, 'ab').toString('hex').length);
const child = spawnSync('sh', ['-c', 'echo out; echo err >&2; exit 3']);
console.log(child.status, String(child.stdout), String(child.stderr));
setTimeout(() => { process.exitCode = 6; }, 5);
