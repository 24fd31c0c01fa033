import { expect, it } from "vitest";
import { egressOf, type Topic } from "../src/console/figures.js";
import { layersOf } from "../src/console/layers.js";
import { read, told } from "../src/console/records.js";
import { added, ratesOf, SAMPLES_MAX, type Sample, short } from "../src/console/samples.js";

const topic = (name: string, source?: string): Topic => ({
  name,
  incarnation: 1,
  partitions: 1,
  kind: source ? "derived" : "source",
  ...(source && { source }),
  read_only: false,
  retention_ms: null,
  bounds: [],
});

it("places each topic right of its source, and no two in one place", () => {
  const topics = [
    topic("b", "a"),
    topic("a"),
    topic("c", "b"),
    topic("d", "a"),
    topic("alone"),
    topic("lost", "gone"),
  ];
  const placed = layersOf(topics);
  const at = (name: string) => placed.find((one) => one.topic.name === name)!;
  expect(placed.length).toBe(topics.length);
  expect(["a", "b", "c", "d", "alone", "lost"].map((name) => at(name).column)).toEqual([
    0, 1, 2, 1, 0, 0,
  ]);
  expect(at("c").source).toBe(at("b"));
  const places = placed.map(({ column, row }) => `${column} ${row}`);
  expect(new Set(places).size).toBe(places.length);
});

it("tells how fast a topic grew between looks, and a new beginning is no fall", () => {
  const sample = (at: number, head: number, bytes: number): Sample => ({
    at,
    heads: new Map([["a", head]]),
    egress: new Map([["a", bytes]]),
  });
  const samples = [sample(0, 10, 0), sample(2000, 30, 4000), sample(4000, 5, 4000)];
  expect(ratesOf(samples, "a", "heads")).toEqual([10, 0]);
  expect(ratesOf(samples, "a", "egress")).toEqual([2000, 0]);
  expect(ratesOf(samples, "other", "heads")).toEqual([0, 0]);
  let kept: readonly Sample[] = [];
  for (let at = 0; at < 100; at += 1) kept = added(kept, sample(at, at, 0));
  expect([kept.length, kept[0]!.at, kept.at(-1)!.at]).toEqual([SAMPLES_MAX, 100 - SAMPLES_MAX, 99]);
});

it("writes a rate in few digits", () => {
  const rates = [0, 3, 0.333, 12.34, 999.4, 1234, 45_678, 1.5e6, 2e9];
  expect(rates.map(short)).toEqual([
    "0",
    "3",
    "0.33",
    "12",
    "999",
    "1.23 k",
    "45.7 k",
    "1.50 M",
    "2.00 G",
  ]);
});

it("reads the bytes that readers were given", () => {
  const metrics = `# HELP tideline_topic_egress_bytes_total Bytes.
tideline_topic_egress_bytes_total{topic="history"} 42
tideline_topic_egress_bytes_total{topic="clicks"} 0
tideline_log_bytes 7
`;
  expect([...egressOf(metrics)]).toEqual([
    ["history", 42],
    ["clicks", 0],
  ]);
});

it("reads records and where to go on, and shows each in one line", () => {
  const lines = `{"partition":0,"incarnation":1,"epoch":1,"seq":7,"time_ms":5,"key":"k","value":"text"}
{"partition":0,"incarnation":1,"epoch":1,"seq":8,"time_ms":5,"key":"k","value":{"a":1}}
{"partition":0,"incarnation":1,"epoch":1,"seq":9,"time_ms":5,"key":"k","value_base64":"/w=="}
{"partition":0,"incarnation":1,"epoch":1,"seq":10,"time_ms":5,"key":"k","skipped":"no field"}
{"covered":{"from":"1-1-7","to":"1-1-11"}}
`;
  const { records, to } = read(lines);
  expect(to).toBe("1-1-11");
  expect(records.map(told)).toEqual(["text", '{"a":1}', "/w==", "⚠ no field"]);
  expect(read('{"covered":{"from":"1-1-11","to":"1-1-11"}}\n').records).toEqual([]);
});
