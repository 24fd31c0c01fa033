// For whoever runs the server: topics with their partitions, and how far the
// views are behind them.

import { useCallback, useEffect, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { type Lag, lagsOf, recordsOf, sum, type Topic } from "./figures.js";

/** Between two looks at the server, in ms. */
const LOOK_MS = 3000;

interface Figures {
  topics: Topic[];
  lags: ReadonlyMap<string, Lag>;
}

export function ConsoleView() {
  const { words, client } = useShared();
  const [figures, setFigures] = useState<Figures | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [open, setOpen] = useState<string | null>(null);

  const look = useCallback(async () => {
    const [{ topics }, metrics] = await Promise.all([
      client.json<{ topics: Topic[] }>("GET", "/v1/topics"),
      client.raw("GET", "/metrics").then((response) => response.text()),
    ]);
    return { topics, lags: lagsOf(metrics) };
  }, [client]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let here = true;
    const again = async () => {
      try {
        const now = await look();
        if (here) setFigures(now);
        if (here) setProblem(null);
      } catch (error) {
        if (here) setProblem(error as Error);
      }
      if (here) timer = setTimeout(() => void again(), LOOK_MS);
    };
    void again();
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [look]);

  return (
    <>
      <div class="title-line">
        <h1>{words.console}</h1>
      </div>
      {problem && (
        <div class="empty" role="alert">
          <p>{tell(words, problem)}</p>
        </div>
      )}
      {!problem && !figures && <p class="wait">{words.loading}</p>}
      {figures && (
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">{words.topic}</th>
              <th scope="col">{words.origin}</th>
              <th scope="col">{words.partitions}</th>
              <th scope="col">{words.records}</th>
              <th scope="col">{words.behind}</th>
            </tr>
          </thead>
          {figures.topics.map((topic) => (
            <TopicRows
              key={topic.name}
              topic={topic}
              lag={figures.lags.get(topic.name)}
              open={open === topic.name}
              turn={() => setOpen(open === topic.name ? null : topic.name)}
            />
          ))}
        </table>
      )}
    </>
  );
}

interface RowsProps {
  topic: Topic;
  /** Of the view that has the topic's name. */
  lag: Lag | undefined;
  open: boolean;
  turn: () => void;
}

/** One topic, and its partitions where they are asked for. */
function TopicRows({ topic, lag, open, turn }: RowsProps) {
  const { words } = useShared();
  const kept = topic.bounds.filter((bounds) => bounds.synced > 0);
  return (
    <tbody>
      <tr data-topic={topic.name}>
        <th scope="row">
          <button type="button" class="quiet" aria-expanded={open} onClick={turn}>
            {topic.name}
          </button>
        </th>
        <td>{topic.source ?? words.own}</td>
        <td>{topic.partitions}</td>
        <td>{sum(topic.bounds.map(recordsOf))}</td>
        <td>{lag ? sum(lag.values()) : "–"}</td>
      </tr>
      {open && (
        <tr>
          <td colSpan={5}>
            {kept.length === 0 && <p class="empty">{words.empty}</p>}
            {kept.length > 0 && (
              <table class="figures inner">
                <thead>
                  <tr>
                    <th scope="col">{words.partition}</th>
                    <th scope="col">{words.epoch}</th>
                    <th scope="col">{words.start}</th>
                    <th scope="col">{words.head}</th>
                    <th scope="col">{words.behind}</th>
                  </tr>
                </thead>
                <tbody>
                  {kept.map(({ partition, epoch, start, synced }) => (
                    <tr key={partition} data-partition={partition}>
                      <th scope="row">{partition}</th>
                      <td>{epoch}</td>
                      <td>{start}</td>
                      <td>{synced}</td>
                      <td>{lag?.get(partition) ?? "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </td>
        </tr>
      )}
    </tbody>
  );
}
