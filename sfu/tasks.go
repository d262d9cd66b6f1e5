package sfu

import (
	"context"
	"errors"
	"time"
)

var (
	errRoomClosed = errors.New("the room is closed")
	errTaskBroke  = errors.New("the room's handling of it broke")
)

// taskQueue is how many tasks may wait. More have to wait for a place in the queue.
const taskQueue = 64

// taskLoop queues what a room's goroutine is to do.
type taskLoop struct {
	tasks chan func()
	// done is closed once no task will run any more.
	done chan struct{}
}

func newTaskLoop() taskLoop {
	return taskLoop{tasks: make(chan func(), taskQueue), done: make(chan struct{})}
}

// do waits until a task has run on the loop. After an error the task never will, or it panicked (errTaskBroke).
func (l taskLoop) do(ctx context.Context, task func()) error {
	ran := make(chan struct{})
	err := errTaskBroke
	select {
	case l.tasks <- func() {
		defer close(ran)
		task()
		err = nil
	}:
	case <-l.done:
		return errRoomClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	// Once queued the task may be running, with the caller's variables.
	select {
	case <-ran:
		return err
	case <-l.done:
		select {
		case <-ran:
			return err
		default:
			return errRoomClosed
		}
	}
}

// post waits for a place in the queue, and not for the task to run.
func (l taskLoop) post(task func()) {
	select {
	case l.tasks <- task:
	case <-l.done:
	}
}

// tryPost returns false, and waits for nothing, when the queue is full.
func (l taskLoop) tryPost(task func()) bool {
	select {
	case l.tasks <- task:
		return true
	default:
		return false
	}
}

// after posts the task when the delay has passed.
func (l taskLoop) after(delay time.Duration, task func()) {
	time.AfterFunc(delay, func() { l.post(task) })
}
